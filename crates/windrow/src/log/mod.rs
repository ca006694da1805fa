//! Layer 2: the framed record log that the WAL and the manifest share.
