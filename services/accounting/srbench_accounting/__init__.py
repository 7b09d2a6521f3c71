"""Accounting: the ledger of facts, and every figure derived from them."""
