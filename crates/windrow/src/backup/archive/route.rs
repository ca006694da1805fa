//! The way to a state: a backup, and the changes behind it.
//!
//! 1. Find the newest backup at or before the state, of the only history that has it. A backup that cannot be used may be that
//!    one, or another history may have the state by it. So it is an error unless the backup to begin with is named.
//! 2. Take the stretches from the place of its binding up to the state, without a gap.
//! 3. Refuse a state that no changes lead to, as behind a bulk load.
//! 4. Compare the records up to the backup with those that its database had: the backup of a database that has parted from
//!    the history is never mixed with it.
//!
//! Nothing is written.
//!
//! Concurrency: the caller keeps others from changing the store.

use std::time::{Duration, SystemTime};

use super::histories::{Base, Histories, Unreachable, bases, check_read, unreachable};
use super::items::RecordsDigest;
use super::stretch::{self, Stretch, each_item};
use crate::backup::damage::damage;
use crate::backup::manifest::{BackupManifest, Binding};
use crate::backup::names::{ObjectName, StretchName};
use crate::backup::objects::{Objects, of_backup};
use crate::backup::store::BackupStore;
use crate::backup::transfer::{BackupPhase, Meter};
use crate::base::{Error, ErrorKind, Result, SequenceNumber};

/// The state that a restore goes to. A backup that cannot be used may have the state, or lead to it. So it is an error unless the
/// restore names the one to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestoreTo {
    /// The state after the change with this sequence number, as [`Change::sequence`](crate::Change::sequence) gives it. A
    /// number within a batch stands for the state before the batch.
    Sequence(SequenceNumber),
    /// The newest state that was archived or backed up at this time, by the clock of the system. It has nothing that was
    /// written later, and what was written before only as far as it was archived then.
    Time(SystemTime),
}

/// A restored state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// The number of the backup that the restore has begun with.
    pub backup: u64,
    /// The sequence number of the state, which is the newest of the new database.
    pub sequence: SequenceNumber,
}

/// A backup, and the changes that lead from it to a state.
#[derive(Debug)]
pub(crate) struct Route {
    /// The number of the backup.
    pub(crate) number: u64,
    pub(crate) manifest: BackupManifest,
    /// The sequence number of the state.
    pub(crate) to: SequenceNumber,
    /// The stretches with all changes behind the backup up to there, and perhaps with some before and behind. None if the
    /// backup has the state.
    pub(crate) stretches: Vec<Stretch>,
}

/// The way to the state `to`, from backup `from` if it is given.
///
/// # Errors
/// `NotFound` if no backup leads there, with what does; `InvalidArgument` if several histories have the state; `Corruption`,
/// `Unsupported` or `Io` if a part of the way is missing, damaged or not read, or a backup that may be a part of it.
pub(crate) fn find(
    store: &dyn BackupStore,
    to: RestoreTo,
    from: Option<u64>,
    meter: &mut Meter<'_>,
) -> Result<Route> {
    let objects = Objects::list(store)?;
    let histories = Histories::new(&objects);
    let (all, mut unusable) = bases(store, &objects);
    let possible = if let Some(number) = from {
        vec![Base::new(number, &objects.whole_backup(store, number)?)]
    } else {
        check_read(&mut unusable)?;
        if !unusable.is_empty() {
            return Err(unusable.swap_remove(0).context(
                "the state may be that of a backup that cannot be used, so name another one",
            ));
        }
        all.clone()
    };
    let (base, to) = match to {
        RestoreTo::Sequence(sequence) => {
            (base_of_sequence(&histories, &possible, sequence)?, sequence)
        }
        RestoreTo::Time(time) => {
            let since_1970 = time.duration_since(SystemTime::UNIX_EPOCH);
            base_of_time(store, &histories, &possible, since_1970.unwrap_or_default())?
        }
    };
    let manifest = objects.whole_backup(store, base.number)?;
    let mut stretches = Vec::new();
    if let Some(binding) = base.binding.filter(|_| to > base.sequence) {
        for &name in chain_of(&histories, base, binding, to)? {
            let stretch = stretch::read(store, name)?;
            stretch.check_whole(&objects)?;
            stretches.push(stretch);
            if name.last >= to {
                break;
            }
        }
        let notes: Vec<_> = stretches.iter().flat_map(|it| &it.notes).copied().collect();
        let missing = unreachable(base.sequence, &notes);
        if let Some(missing) = missing.iter().find(|missing| missing.has(to)) {
            let may_be_later = !unusable.is_empty();
            return Err(no_changes_lead_to(
                to,
                *missing,
                binding,
                &all,
                may_be_later,
            ));
        }
        check_records(store, base, binding, &stretches, meter)?;
    }
    Ok(Route {
        number: base.number,
        manifest,
        to,
        stretches,
    })
}

/// Checks, for a backup with changes behind it, that these are changes of its own history.
///
/// # Errors
/// `Corruption`, `Unsupported` or `Io`, which name the backup, or a stretch.
pub(crate) fn check_base(
    store: &dyn BackupStore,
    objects: &Objects,
    (number, manifest): (u64, &BackupManifest),
    meter: &mut Meter<'_>,
) -> Result<()> {
    let Some(binding) = manifest.binding else {
        return Ok(());
    };
    let base = Base::new(number, manifest);
    let histories = Histories::new(objects);
    let mut later = histories.of(binding.history).iter();
    if !later.any(|name| name.last > base.sequence) {
        return Ok(());
    }
    let mut stretches = Vec::new();
    for &name in chain_of(&histories, base, binding, base.sequence + 1)? {
        if name.first <= base.sequence {
            stretches.push(stretch::read(store, name)?);
        }
    }
    check_records(store, base, binding, &stretches, meter)
}

/// The stretches from the place of the binding of `base` on. They have the change `to`.
fn chain_of(
    histories: &Histories,
    base: Base,
    binding: Binding,
    to: SequenceNumber,
) -> Result<&[StretchName]> {
    let chain = histories.chain(binding.history, binding.place + 1)?;
    let end = chain.last().map_or(binding.place, |name| name.last);
    if end >= to {
        return Ok(chain);
    }
    let what = format!(
        "the archived changes behind {end} are missing, so changes up to {to} do not continue it"
    );
    Err(damage(
        &ObjectName::Manifest(base.number).to_string(),
        0,
        what,
    ))
}

/// Checks that the records of `stretches` up to the backup are those of its database.
fn check_records(
    store: &dyn BackupStore,
    base: Base,
    binding: Binding,
    stretches: &[Stretch],
    meter: &mut Meter<'_>,
) -> Result<()> {
    let mut digest = RecordsDigest::default();
    let mut end = binding.place;
    if binding.place < base.sequence {
        let bytes = stretches.iter().map(Stretch::bytes);
        meter.begin(BackupPhase::Verifying, bytes.sum());
        for stretch in stretches {
            let goes_on = each_item(store, stretch, meter, &mut |item, _, last| {
                if let (Some(record), Some(last)) = (item.record(), last)
                    && last > binding.place
                {
                    digest.add(record);
                    end = last;
                }
                Ok(end < base.sequence)
            })?;
            if !goes_on {
                break;
            }
        }
    }
    if end == base.sequence && digest.finish() == binding.digest {
        return Ok(());
    }
    let what = "the archived changes up to it are others than its database had, so those behind it do not continue it";
    let error = damage(&ObjectName::Manifest(base.number).to_string(), 0, what);
    Err(of_backup(base.number, error))
}

/// The backup from which the changes lead to `sequence`.
fn base_of_sequence(
    histories: &Histories,
    bases: &[Base],
    sequence: SequenceNumber,
) -> Result<Base> {
    let mut found: Vec<Base> = Vec::new();
    for base in bases.iter().filter(|base| base.sequence <= sequence) {
        if end_of(histories, base)? < sequence {
            continue;
        }
        // Of one history, the newest decides.
        let history = |base: &Base| base.binding.map(|binding| binding.history);
        let other = found
            .iter_mut()
            .find(|other| history(base).is_some() && history(other) == history(base));
        match other {
            Some(other) if (other.sequence, other.number) < (base.sequence, base.number) => {
                *other = *base;
            }
            Some(_) => {}
            None => found.push(*base),
        }
    }
    match found[..] {
        [base] => Ok(base),
        [] => Err(not_found(histories, bases, sequence)),
        _ => {
            let numbers: Vec<String> = found.iter().map(|it| it.number.to_string()).collect();
            Err(Error::invalid_argument(format!(
                "sequence number {sequence} is reached from the backups {}, which belong to different histories: name one of \
                 them",
                numbers.join(", ")
            )))
        }
    }
}

/// The last sequence number that changes lead to from `base`, whatever they are.
fn end_of(histories: &Histories, base: &Base) -> Result<SequenceNumber> {
    let Some(binding) = base.binding else {
        return Ok(base.sequence);
    };
    let chain = histories.chain(binding.history, base.sequence + 1)?;
    Ok(chain.last().map_or(base.sequence, |name| name.last))
}

fn not_found(histories: &Histories, bases: &[Base], sequence: SequenceNumber) -> Error {
    let ranges = bases.iter().rev().map(|base| {
        let end = end_of(histories, base).unwrap_or(base.sequence);
        let (number, begin) = (base.number, base.sequence);
        format!("backup {number}: {begin} to {end}")
    });
    let shown: Vec<String> = ranges.take(5).collect();
    let shown = match &shown[..] {
        [] => "there is no backup that can be used".to_owned(),
        shown => format!("there are {}", shown.join("; ")),
    };
    let message = format!("no backup reaches sequence number {sequence}; {shown}");
    Error::new(ErrorKind::NotFound, message)
}

/// The backup and the sequence number of the newest state at `time`.
fn base_of_time(
    store: &dyn BackupStore,
    histories: &Histories,
    bases: &[Base],
    time: Duration,
) -> Result<(Base, SequenceNumber)> {
    // The time and the place of a state, then the backup that is nearest.
    let mut newest: Option<((Duration, SequenceNumber, SequenceNumber, u64), Base)> = None;
    let mut take = |moment: Duration, sequence, base: &Base| {
        let order = (moment, sequence, base.sequence, base.number);
        let is_newer = newest.as_ref().is_none_or(|(known, _)| *known < order);
        if moment <= time && is_newer {
            newest = Some((order, *base));
        }
    };
    for base in bases {
        take(base.created, base.sequence, base);
        let Some(binding) = base.binding else {
            continue;
        };
        for &name in histories.chain(binding.history, base.sequence + 1)? {
            take(stretch::read(store, name)?.moment, name.last, base);
        }
    }
    let newest = newest.map(|((_, sequence, _, _), base)| (base, sequence));
    newest.ok_or_else(|| {
        let message = "no backup was made at that time or before";
        Error::new(ErrorKind::NotFound, message)
    })
}

/// The error for a state that the changes of its history do not make. `may_be_later`: some backups cannot be used.
fn no_changes_lead_to(
    sequence: SequenceNumber,
    missing: Unreachable,
    binding: Binding,
    bases: &[Base],
    may_be_later: bool,
) -> Error {
    let Unreachable {
        first,
        last,
        keyspace,
    } = missing;
    let why = match keyspace {
        None => {
            format!("at {first} a bulk load or an ingestion has added tables, which no archive has")
        }
        Some(keyspace) => format!(
            "behind {} the archive lacks writes to keyspace {keyspace}, which was dropped before they were archived",
            first - 1
        ),
    };
    let is_next = |base: &&Base| {
        base.sequence >= sequence && base.binding.is_some_and(|it| it.history == binding.history)
    };
    let next = bases
        .iter()
        .filter(is_next)
        .min_by_key(|base| base.sequence);
    let next = match (last, next) {
        (Some(last), _) => format!("the next state that can be restored is {}", last + 1),
        (None, Some(base)) => format!(
            "the next state that can be restored is that of backup {}, with sequence number {}",
            base.number, base.sequence
        ),
        (None, None) if may_be_later => {
            "a backup that cannot be used may have that, or a later state".to_owned()
        }
        (None, None) => "no later backup has that".to_owned(),
    };
    let message = format!("sequence number {sequence} cannot be restored: {why}; {next}");
    Error::new(ErrorKind::NotFound, message)
}
