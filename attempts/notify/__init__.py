"""Messages to people: their words, and the ways out. Knows no row and no rule; services hand in plain facts."""
