"""What the console's pages show, without HTTP: calls on any Kafka cluster, and what is made of their answers.

Pure: calls are generators over ``tidelog.client``, results are plain values.
"""
