//! Descriptions of entries that expire: what they estimate, and their bytes.

use super::*;
use crate::base::expiry::put_expiring;
use proptest::prelude::*;

/// What a tally says of entries with these expiries and values of these lengths, and the bytes of each.
fn described(entries: &[(Moment, usize)]) -> (Expiring, Vec<(Moment, u64)>) {
    let mut tally = ExpiringTally::default();
    let mut pairs = Vec::new();
    for (expiry, length) in entries {
        let mut stored = Vec::new();
        put_expiring(&mut stored, *expiry, &vec![0; *length]);
        let trailer = Trailer::new(1, Kind::ExpiringValue);
        tally.add(b"key", trailer, &stored).unwrap();
        pairs.push((*expiry, 3 + stored.len() as u64));
    }
    (*tally.finish().unwrap(), pairs)
}

/// The bytes that are expired at `now`.
fn expired(pairs: &[(Moment, u64)], now: Moment) -> u64 {
    let expired = pairs.iter().filter(|(expiry, _)| *expiry <= now);
    expired.map(|(_, bytes)| bytes).sum()
}

#[test]
fn expired_bytes_grow_by_an_eighth_with_each_part() {
    let entries = Expiring {
        entries: 3,
        bytes: 800,
        moments: [100, 200, 300, 300, 300, 400, 500, 600, 1000],
    };
    for (now, expired) in [
        (0, 0),
        (99, 0),
        (100, 0),
        (150, 50),
        (299, 199),
        (300, 400),
        (350, 450),
        (600, 700),
        (700, 725),
        (999, 799),
        (1000, 800),
        (u64::MAX, 800),
    ] {
        assert_eq!(entries.expired_bytes(now), expired, "{now}");
    }
    let at_once = Expiring {
        moments: [5; 9],
        ..entries
    };
    assert_eq!(at_once.expired_bytes(4), 0);
    assert_eq!(at_once.expired_bytes(5), 800);
    assert!(ExpiringTally::default().finish().is_none());
}

/// In days: nearly all of a month, a few of a decade, and a few that go soon.
#[test]
fn outliers_do_not_spread_the_others() {
    let day = 24 * 3600 * 1000;
    for soon in [0, 1, 5, 20] {
        let entries: Vec<(Moment, usize)> = (0..10_000)
            .map(|number| match number % 1000 {
                500 => (3650 * day, 100),
                few if few < soon => (few * day, 100),
                _ => (30 * day, 100),
            })
            .collect();
        let (all, pairs) = described(&entries);
        for now in [1, 10, 29, 30, 31, 1000, 3649, 3650].map(|days| days * day) {
            let (found, right) = (all.expired_bytes(now), expired(&pairs, now));
            assert!(found.abs_diff(right) * 8 <= all.bytes, "{soon} {now}");
        }
    }
}

/// In minutes: nine entries of ten of half an hour, one of a year.
#[test]
fn mixed_lives_are_known_apart() {
    let entries = (0..5000).map(|number| if number % 10 == 0 { 525_600 } else { 30 });
    let entries: Vec<(Moment, usize)> = entries.map(|minutes| (minutes * 60_000, 50)).collect();
    let (all, _) = described(&entries);
    assert_eq!(all.expired_bytes(29 * 60_000), 0);
    let expired = all.expired_bytes(31 * 60_000);
    assert!(expired * 8 >= all.bytes * 7, "{expired} {}", all.bytes);
    assert!(all.expired_bytes(525_599 * 60_000) < all.bytes);
}

proptest! {
    #[test]
    fn a_description_round_trips(
        (entries, bytes) in (1..u64::MAX, any::<u64>()),
        mut moments in proptest::array::uniform9(0..=MOMENT_MAX),
    ) {
        moments.sort_unstable();
        let described = Expiring { entries, bytes, moments };
        let mut encoded = Vec::new();
        described.encode(&mut encoded);
        let mut reader = Reader::new(&encoded);
        prop_assert_eq!(Expiring::read(&mut reader).unwrap(), described);
        prop_assert!(reader.is_empty());
        for end in 0..encoded.len() {
            prop_assert!(Expiring::read(&mut Reader::new(&encoded[..end])).is_err());
        }
    }

    #[test]
    fn expired_bytes_never_fall(
        bytes in any::<u64>(),
        mut moments in proptest::array::uniform9(0..=MOMENT_MAX),
        now in 0..MOMENT_MAX,
        later in 0..MOMENT_MAX,
    ) {
        moments.sort_unstable();
        let described = Expiring { entries: 1, bytes, moments };
        let (now, later) = (now.min(later), now.max(later));
        prop_assert!(described.expired_bytes(now) <= described.expired_bytes(later));
        prop_assert!(described.expired_bytes(later) <= bytes);
    }

    /// Entries of any lives, in any order, many more than the sketch holds.
    #[test]
    fn less_than_an_eighth_of_the_bytes_is_wrong(
        lives in proptest::collection::vec((0..40_u32, 0..400_usize), 1..9),
        count in 1..4000_u64,
        seed in any::<u64>(),
    ) {
        let mut random = seed | 1;
        let entries: Vec<(Moment, usize)> = (0..count).map(|number| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(number);
            let life = usize::try_from(random >> 33).unwrap() % lives.len();
            let (bits, length) = lives[life];
            ((random >> 7) % (1 << bits), length)
        }).collect();
        let (all, pairs) = described(&entries);
        prop_assert_eq!((all.entries, all.bytes), (count, expired(&pairs, MOMENT_MAX)));
        // Each entry is wrong by at most itself, and the sketch by a 256th for each doubling.
        let most = all.bytes / 8 + all.bytes * 4 / 256 + 1 + all.bytes / count.max(1);
        for (now, _) in pairs.iter().step_by(7) {
            for now in [now.saturating_sub(1), *now, now + 1] {
                let (found, right) = (all.expired_bytes(now), expired(&pairs, now));
                prop_assert!(found.abs_diff(right) <= most, "{} {} of {}", found, right, all.bytes);
            }
        }
    }
}
