//! Sound records behind damage.

use super::*;

/// All sound records, and whether something was skipped. Each skip moves forward.
fn read_around_damage(vfs: &MemoryVfs, recorded: Option<u64>) -> (Records, usize) {
    let mut reader = LogReader::open(vfs, directory(), NAME, NUMBER, recorded).unwrap();
    let (mut records, mut holes) = (Vec::new(), 0);
    loop {
        while let Some(record) = reader.next().unwrap() {
            records.push((record.end, record.payload.to_vec()));
        }
        let damage = reader.position();
        if !reader.skip_damage().unwrap() {
            assert_eq!(reader.position(), damage);
            return (records, holes);
        }
        assert!(reader.position() > damage);
        holes += 1;
    }
}

#[test]
fn a_flipped_bit_loses_only_the_record_that_it_is_in() {
    let vfs = MemoryVfs::default();
    let mut writer = create(&vfs);
    for number in 0..40_u8 {
        // Short and long chunks, and one that is longer than the search for short ones.
        let length = if number == 20 {
            70_000
        } else {
            usize::from(number) * 7 + 3
        };
        writer.append(&vec![number; length]).unwrap();
        if number % 9 == 8 {
            sync(&writer);
        }
        if number == 30 {
            writer.append_marker().unwrap();
        }
    }
    let (records, end) = read(&vfs, None).unwrap();
    let path = directory().join(NAME);
    let bytes = vfs.read(&path);
    let is_in_long = |at: usize| records[19].0 + 600 < at as u64 && (at as u64) < records[20].0;
    for at in (0..bytes.len()).filter(|at| !is_in_long(*at) || at % 9973 == 0) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        vfs.write(&path, &damaged);
        let recorded = (at % 2 == 0).then_some(end.offset);
        let (found, holes) = read_around_damage(&vfs, recorded);
        let starts = std::iter::once(0).chain(records.iter().map(|record| record.0));
        let is_hit = |(start, record): (u64, &(u64, Vec<u8>))| {
            let marker = record.0 - start > record.1.len() as u64 + 2 * HEADER_BYTES as u64 - 1;
            let first = if marker {
                start + HEADER_BYTES as u64
            } else {
                start
            };
            (first..record.0).contains(&(at as u64))
        };
        let sound = starts.zip(&records).filter(|place| !is_hit(*place));
        let sound: Records = sound.map(|(_, record)| record.clone()).collect();
        assert!(
            found == sound,
            "byte {at}: {} of {}",
            found.len(),
            sound.len()
        );
        assert!(holes <= 1);
    }
}

#[test]
fn a_log_without_a_sound_record_behind_damage_ends_there() {
    let vfs = MemoryVfs::default();
    let mut writer = create(&vfs);
    writer.append(b"first").unwrap();
    writer.append(b"second").unwrap();
    let path = directory().join(NAME);
    let bytes = vfs.read(&path);
    let damage = |at: usize| {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        vfs.write(&path, &damaged);
    };
    damage(bytes.len() - 1);
    let (records, holes) = read_around_damage(&vfs, None);
    assert_eq!((records.len(), holes), (1, 0));
    // A recorded end stops the search.
    damage(0);
    let (records, _) = read_around_damage(&vfs, Some(10));
    assert_eq!(records.len(), 0);
    assert_eq!(read_around_damage(&vfs, None).0.len(), 1);
}

/// Somebody may make headers that are sound and whose payloads are not, each of which claims all that follows.
// I5
#[test]
fn headers_that_claim_the_rest_of_the_file_do_not_cost_its_square() {
    const HEADERS: usize = 2000;
    let length = HEADERS * HEADER_BYTES;
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let offset = bytes.len();
        let mut chunk = vec![0; length - offset];
        let payload = u32::try_from(chunk.len() - HEADER_BYTES).unwrap();
        let place = (NUMBER, offset as u64);
        let sealed = chunk::complete(&mut chunk, payload, Some(0), place);
        bytes.extend_from_slice(&sealed[..HEADER_BYTES]);
    }
    let vfs = MemoryVfs::default();
    vfs.write(&directory().join(NAME), &bytes);
    let mut reader = LogReader::open(&vfs, directory(), NAME, NUMBER, None).unwrap();
    assert!(reader.next().unwrap().is_none() && !reader.skip_damage().unwrap());
    let tried = reader.tried_bytes();
    assert!(tried <= 6 * length as u64, "{tried} of {length}");
}
