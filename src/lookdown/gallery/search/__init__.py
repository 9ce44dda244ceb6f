"""One search: the request, what is searched for, engines, filters, overlap, re-ranking, and what a score is worth."""
