//! The errors of reads that return wrong data.

use windrow::Error;

#[cold]
pub(crate) fn wrong(key: &[u8], what: &str) -> Error {
    let message = format!("the key {} {what}", key.escape_ascii());
    Error::corruption("the store", 0, message)
}

#[cold]
pub(crate) fn lost(key: &[u8]) -> Error {
    let message = format!("the record with key {} is not found", key.escape_ascii());
    Error::corruption("the store", 0, message)
}

#[cold]
pub(crate) fn passed(number: u64) -> Error {
    let message = format!("a scan skipped the record with number {number} in its key");
    Error::corruption("the store", 0, message)
}

#[cold]
pub(crate) fn foreign(key: &[u8]) -> Error {
    Error::invalid_argument(format!(
        "the key {} is not a key of ycsb-load with these settings",
        key.escape_ascii()
    ))
}
