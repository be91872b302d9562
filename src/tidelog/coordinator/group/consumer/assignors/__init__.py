"""Server-side assignors of KIP-848: compute an assignment from the subscriptions and the current assignment."""
