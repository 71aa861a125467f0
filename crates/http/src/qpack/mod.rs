//! QPACK (RFC 9204): compression of header fields for HTTP/3, sans-I/O.
