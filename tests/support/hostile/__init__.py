"""Files to attack the reader with: small ones of every kind, damage done to them, and a process that bears it."""
