"""What operators ask of a cluster, answered from facts: why is this consumer group stuck?

Pure, over the calls of ``tidelog.client``: ``collecting`` asks any Kafka cluster through its protocol, ``causes`` decides.
Commands and pages draw what comes out.
"""
