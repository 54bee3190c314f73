"""Window queries: what their aggregates keep, which strategy maintains them, and the views that come of it."""
