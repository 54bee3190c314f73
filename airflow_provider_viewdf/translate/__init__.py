"""Turning kinds of queries into queries with part references: plain ones today, patterns and windows later.

A translation takes the tree of a query and gives back the tree of one whose every partitioned table has a
subscript. It knows nothing of texts or statements beyond the places that its errors name.
"""
