//! The bytes of batches, damage, save points, limits.

use windrow::ErrorKind;

use super::{get, open};
use crate::batch::{DEFAULT_FAMILY, Write, WriteBatch};
use crate::options::WriteOptions;

#[test]
fn a_batch_has_the_bytes_of_rocksdb() {
    let mut batch = WriteBatch::default();
    batch.add(DEFAULT_FAMILY, Write::Put(b"k", b"vv"));
    batch.add_log_data(b"log");
    batch.add(300, Write::Delete(b"d"));
    batch.add(DEFAULT_FAMILY, Write::DeleteRange(b"a", b"b"));
    let mut bytes = vec![0; 8];
    bytes.extend([3, 0, 0, 0]);
    bytes.extend(b"\x01\x01k\x02vv\x03\x03log\x04\xac\x02\x01d\x0f\x01a\x01b");
    assert_eq!(batch.bytes(), bytes);
    let copy = WriteBatch::from_bytes(&bytes);
    assert_eq!(copy.count(), 3);
    let writes: Vec<_> = copy.writes().map(Result::unwrap).collect();
    let expected = [
        (DEFAULT_FAMILY, Write::Put(b"k", b"vv")),
        (300, Write::Delete(b"d")),
        (DEFAULT_FAMILY, Write::DeleteRange(b"a", b"b")),
    ];
    assert_eq!(writes, expected);
}

#[test]
fn damaged_bytes_of_a_batch_are_an_error_and_write_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (database, family) = open(folder.path());
    let mut batch = WriteBatch::default();
    for write in [
        Write::Put(b"k", b"v"),
        Write::Merge(b"k", b"o"),
        Write::SingleDelete(b"k"),
    ] {
        batch.add(DEFAULT_FAMILY, write);
    }
    let sound = batch.bytes().to_vec();
    let fails = |bytes: &[u8]| {
        let batch = WriteBatch::from_bytes(bytes);
        let outcome = batch.check();
        let outcome = outcome.and_then(|()| batch.writes().collect::<Result<Vec<_>, _>>());
        let written = database.write(&batch, WriteOptions::default());
        outcome.is_err() && written.is_err()
    };
    for length in 0..sound.len() {
        assert!(fails(&sound[..length]), "{length}");
    }
    let mut longer = sound.clone();
    longer.push(1);
    assert!(fails(&longer));
    let mut more = sound.clone();
    more[8] += 1;
    assert!(fails(&more));
    let mut fewer = sound.clone();
    fewer[8] -= 1;
    assert!(fails(&fewer));
    let mut unknown = sound;
    unknown[12] = 0x40;
    assert!(fails(&unknown));
    assert_eq!(get(&family, "k"), None);
}

#[test]
fn save_points_and_limits_of_a_batch() {
    let mut batch = WriteBatch::new(0, 30);
    batch.add(DEFAULT_FAMILY, Write::Put(b"a", b"1"));
    batch.set_save_point();
    batch.add(DEFAULT_FAMILY, Write::Put(b"b", b"2"));
    batch.set_save_point();
    batch.add(DEFAULT_FAMILY, Write::Delete(b"c"));
    batch.pop_save_point().unwrap();
    assert_eq!(batch.count(), 3);
    batch.roll_back_to_save_point().unwrap();
    assert_eq!(batch.count(), 1);
    assert_eq!(
        batch.roll_back_to_save_point().unwrap_err().kind(),
        ErrorKind::NotFound
    );
    batch.check().unwrap();
    batch.add(DEFAULT_FAMILY, Write::Put(b"long", &[b'v'; 20]));
    assert_eq!((batch.count(), batch.bytes().len()), (1, 17));
    assert!(batch.check().is_err());
    batch.clear();
    batch.check().unwrap();
    assert_eq!(batch.bytes(), [0; 12]);
}
