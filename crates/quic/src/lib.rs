//! Sans-I/O QUIC v1: endpoint, connection, spaces, paths, recovery, streams, policy seams.
