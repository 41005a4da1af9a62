"""The asynchronous client. `quorate._sync` is written out of it by `scripts/generate_sync.py`, but for `_io`."""
