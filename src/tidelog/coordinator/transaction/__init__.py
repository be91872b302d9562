"""The transaction coordinator: a record machine on ``__transaction_state``, in Kafka's formats (KIP-98, KIP-360, KIP-890)."""
