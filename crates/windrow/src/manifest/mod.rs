//! Layer 3: edits, versions and file metadata.
