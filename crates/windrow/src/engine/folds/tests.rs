//! The bounds of the folds that wait.

use super::*;

const MAP: KeyspaceId = KeyspaceId(7);
const OTHER: KeyspaceId = KeyspaceId(8);

fn kept() -> (KeptFolds, Arc<MemoryTracker>) {
    let tracker = Arc::new(MemoryTracker::default());
    (KeptFolds::new(&tracker), tracker)
}

#[test]
fn one_fold_of_each_key_waits_and_it_is_the_newest() {
    let (folds, tracker) = kept();
    assert_eq!(folds.add(MAP, b"a", 3, b"old"), Added::First);
    assert_eq!(folds.add(OTHER, b"a", 4, b"other"), Added::First);
    assert_eq!(folds.add(MAP, b"b", 5, b""), Added::Waits);
    assert_eq!(folds.add(MAP, b"a", 3, b"old"), Added::Known);
    assert_eq!(folds.add(MAP, b"a", 9, b"newer"), Added::Waits);
    assert_eq!(folds.add(MAP, b"a", 3, b"old"), Added::Known);
    assert_eq!(folds.keyspaces(), BTreeSet::from([MAP, OTHER]));
    let bytes = |folds: &[(&str, &str)]| -> u64 {
        let bytes_of = |(key, value): &(&str, &str)| {
            Proposal::bytes_of(key.as_bytes(), value.as_bytes()) as u64
        };
        folds.iter().map(bytes_of).sum()
    };
    let of_map = bytes(&[("a", "newer"), ("b", "")]);
    assert_eq!(tracker.bytes(), of_map + bytes(&[("a", "other")]));
    let taken = folds.take(MAP).unwrap();
    let newest = |key: &[u8]| taken.by_key[key].newest;
    assert_eq!((taken.by_key.len(), newest(b"a"), newest(b"b")), (2, 9, 5));
    assert_eq!(taken.by_key[&b"a"[..]].value, b"newer");
    assert!(folds.take(MAP).is_none());
    // They are counted as long as the job has them.
    assert_eq!(tracker.bytes(), of_map + bytes(&[("a", "other")]));
    drop(taken);
    assert_eq!(tracker.bytes(), bytes(&[("a", "other")]));
    // A job is due again.
    assert_eq!(folds.add(MAP, b"a", 10, b"newest"), Added::First);
    drop(folds);
    assert_eq!(tracker.bytes(), 0);
}

#[test]
fn folds_beyond_the_bound_are_dropped() {
    let (folds, tracker) = kept();
    let value = [1; 1000];
    let mut waiting = 0_u32;
    loop {
        let keyspace = if waiting.is_multiple_of(2) {
            MAP
        } else {
            OTHER
        };
        match folds.add(keyspace, &waiting.to_be_bytes(), 1, &value) {
            Added::First | Added::Waits => waiting += 1,
            Added::Dropped => break,
            Added::Known => unreachable!("each key is new"),
        }
    }
    assert!(waiting > 100, "{waiting}");
    assert!(tracker.bytes() <= BYTES_MAX as u64);
    assert!(tracker.bytes() + 2000 > BYTES_MAX as u64);
    // One that takes the place of another needs no more memory.
    let known = 0_u32.to_be_bytes();
    assert_eq!(folds.add(MAP, &known, 2, &value), Added::Waits);
    assert_eq!(folds.add(MAP, &known, 3, &[1; 3000]), Added::Dropped);
    assert_eq!(
        folds.add(MAP, b"long", 1, &vec![0; BYTES_MAX]),
        Added::Dropped
    );
    drop(folds.take(OTHER));
    assert_eq!(folds.add(MAP, &known, 3, &[1; 3000]), Added::Waits);
}
