//! Statistics of writes.

use std::sync::Arc;

use super::{creating, open_with, put};
use crate::batch::{Write, WriteBatch};
use crate::options::WriteOptions;
use crate::statistics::Statistics;
use crate::transaction::{Control, Transaction};

const KEYS_WRITTEN: u32 = 58;
const BYTES_WRITTEN: u32 = 61;
const WRITE_MICROS: u32 = 1;

#[test]
fn what_is_written_is_counted_as_the_level_says() {
    let folder = tempfile::tempdir().unwrap();
    let statistics = Arc::new(Statistics::new().unwrap());
    let mut options = creating();
    options.statistics = Some(Arc::clone(&statistics));
    let (database, families) = open_with(folder.path(), &options, &[]).unwrap();
    let counts = || {
        let times = statistics.histogram(WRITE_MICROS);
        (
            statistics.ticker(KEYS_WRITTEN),
            statistics.ticker(BYTES_WRITTEN),
            times.count,
        )
    };
    assert_eq!(counts(), (0, 0, 0));
    put(&database, &families[0], "k", "vv");
    // A header of 12 bytes, a tag, and two lengths.
    assert_eq!(counts(), (1, 18, 1));
    let mut batch = WriteBatch::default();
    batch.add(0, Write::Put(b"k", b"v"));
    batch.add(0, Write::Delete(b"k"));
    database.write(&batch, WriteOptions::default()).unwrap();
    assert_eq!(counts(), (3, 18 + 12 + 5 + 3, 2));
    let options = WriteOptions::default();
    let mut transaction = Transaction::begin(&database, Control::Optimistic, options, false);
    transaction
        .write(&families[0], Write::Put(b"k", b"v"))
        .unwrap();
    assert_eq!(counts().0, 3);
    transaction.commit().unwrap();
    assert_eq!(counts(), (4, 38 + 17, 3));
    // What fails does not count.
    let wrong = Write::DeleteRange(b"b", b"a");
    assert!(
        database
            .write_one(&families[0], wrong, WriteOptions::default())
            .is_err()
    );
    assert_eq!(counts().0, 4);
    // No times, and then nothing.
    statistics.set_level(2);
    put(&database, &families[0], "k", "v");
    assert_eq!(counts(), (5, 55 + 17, 3));
    statistics.set_level(0);
    put(&database, &families[0], "k", "v");
    assert_eq!(counts(), (5, 72, 3));
    let times = statistics.histogram(WRITE_MICROS);
    assert!(times.max > 0.0 && times.min <= times.median && times.median <= times.max);
    assert!(
        statistics
            .text()
            .starts_with("rocksdb.number.keys.written COUNT : 5\n")
    );
    assert_eq!(statistics.ticker(0), 0);
    assert_eq!(statistics.histogram(0).count, 0);
}
