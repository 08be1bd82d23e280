"""The worker process, which computes the answers, and its supervisor."""
