//! HTTP/3 (RFC 9114), sans-I/O: frames, messages and the engine that runs on a QUIC connection.
