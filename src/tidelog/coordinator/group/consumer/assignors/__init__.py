"""Server-side assignors of KIP-848: who reads which partition, from subscriptions and from who reads them now."""
