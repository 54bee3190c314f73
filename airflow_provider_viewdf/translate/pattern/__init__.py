"""Pattern queries: from what was asked, over a finite automaton, to a helper view and the view itself.

Each file is one step, and each step is a pure function of what the step before it gave:

    query       what was asked, as values                          (made by language.pattern_syntax)
    automaton   the PATTERN clause as positions and who follows whom
    machine     states, and edges with the conditions under which they are taken
    memory      what a run keeps in mind, and which runs need not be kept
    write_views the helper view and the view, as statements of the language
    pieces      the query in pieces, to find the one that Spark refuses
    explain     the machine as text and as a diagram
"""
