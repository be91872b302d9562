"""Consumer groups: who is a member, what each one owns, how far it has read."""
