"""One public verb per business act; every door calls these."""
