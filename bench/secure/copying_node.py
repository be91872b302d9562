"""``tidelog`` without sendfile: bytes of files go through the process, as they do under TLS, but are not encrypted."""

from tidelog.cli.main import run
from tidelog.server.serving.transport import PlainTransport

if __name__ == "__main__":
    PlainTransport.can_sendfile = False
    run()
