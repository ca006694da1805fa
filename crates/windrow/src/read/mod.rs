//! Layer 4: point reads, merging cursors, visibility.

pub(crate) mod merge;
pub(crate) mod visible;

#[cfg(test)]
mod tests;
