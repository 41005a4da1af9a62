"""The blocking client, written out of `quorate._async` by `scripts/generate_sync.py`, but for `_io`."""
