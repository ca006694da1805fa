//! Bounds of the data model.

/// The longest key, in bytes. The shortest has one byte.
pub const KEY_BYTES_MAX: usize = 64 * 1024;

/// The longest end of a range tombstone, in bytes: it may be right behind the longest key.
pub(crate) const RANGE_END_BYTES_MAX: usize = KEY_BYTES_MAX + 1;

/// The longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// A shorter value is never separated from its key, however long that is, in bytes.
pub const VALUE_BYTES_SEPARATED_MIN: usize = 64;

/// A longer value is large under all options, in bytes.
pub const VALUE_BYTES_IN_PLACE_MAX: usize = 1024 * 1024;

/// The longest operand of a merge operator, in bytes. Operands are always beside their keys.
pub const OPERAND_BYTES_MAX: usize = VALUE_BYTES_IN_PLACE_MAX;

/// A longer value is not compressed: that would take as much memory again, in bytes.
pub(crate) const VALUE_BYTES_COMPRESSED_MAX: usize = 16 * 1024 * 1024;

/// The last moment at which an entry can expire, in milliseconds since the start of 1970: in the year 10889.
pub const EXPIRY_MILLISECONDS_MAX: u64 = (1 << 48) - 1;

/// The longest name of a keyspace, in bytes. The shortest has one byte.
pub const KEYSPACE_NAME_BYTES_MAX: usize = 255;

/// The largest encoded batch, in bytes.
pub const BATCH_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// About the most memory for what one transaction has read, in bytes. One that reads more cannot commit writes.
pub const TRANSACTION_READS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// About the most memory for the locks of all transactions of a database, in bytes.
pub const LOCK_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// The most segments that one table file can hold.
pub const SEGMENTS_MAX: usize = 12;

/// The most levels below level 0.
pub const LEVELS_MAX: usize = 15;

/// About the most table files of a keyspace; the exact bound is twice this plus the files of small levels.
pub(crate) const TABLE_FILES_MAX: u64 = 64 << 10;

/// The most transient log files that the levels from 1 on of a keyspace refer to at rest, if values are put in place at
/// all. In the largest tree, transient logs have a third of its bytes, and a file has a quarter of a table's length.
pub(crate) const TRANSIENT_FILES_MAX: u64 = 2 * TABLE_FILES_MAX;

/// The longest pointer to a value, in bytes: two numbers of at most ten bytes, and two lengths below
/// 2^35.
pub(crate) const POINTER_BYTES_MAX: usize = 30;
