//! Files of a database as an attacker makes them: changed, and with sound checksums.
//!
//! What one file says of another one follows a change: the length of a manifest in `CURRENT`, the length of a log in the next
//! log and in the manifest, and the checksum of a footer in the manifest. So a change gets past what is checked first.

use super::bytes::{
    change, change_in_place, checksum, number, put_prefixed, put_varint, take_prefixed, take_varint,
};
use super::choices::Choices;
use super::logs::{Log, Record, change_edit, read_edit, write_edit};
use super::units::{Unit, UnitKind, garbage_units, table_units, value_units};
use std::collections::BTreeMap;

/// The tags of records that the forgery knows.
pub(super) mod tag {
    /// What makes a keyspace: its creation, its options, and its merge operator.
    #[cfg(test)]
    pub(in crate::hostile) const OF_KEYSPACE: [u64; 3] = [3, 14, 28];
    pub(super) const ADD_FILE: u64 = 4;
    #[cfg(test)]
    pub(in crate::hostile) const FLUSHED: u64 = 7;
    pub(super) const LOG_END: u64 = 10;
    pub(super) const LOG_SYNCED: u64 = 11;
    pub(super) const ADD_SEGMENT: u64 = 23;
}

/// The number of the manifest of a folder that is made of a state.
const STATE_NUMBER: u64 = 999_999;

const CURRENT: &str = "CURRENT";

/// The files of a folder, by name.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// The number in the name of a file.
fn number_of(name: &str) -> u64 {
    let digits = name.split('.').next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

/// A folder that is being forged.
#[derive(Debug)]
pub(super) struct Forgery<'a> {
    pub(super) files: Files,
    /// The keys of the database, as far as records of values need them.
    keys: &'a [Vec<u8>],
}

impl<'a> Forgery<'a> {
    pub(super) fn new(files: Files, keys: &'a [Vec<u8>]) -> Self {
        Self { files, keys }
    }

    /// A folder with `state`, an edit, as its manifest.
    pub(super) fn with_state(mut files: Files, keys: &'a [Vec<u8>], state: &[u8]) -> Self {
        let bytes = Log::of_one(STATE_NUMBER, state.to_vec()).write().0;
        files.insert(format!("{STATE_NUMBER}.manifest"), bytes);
        Self { files, keys }
    }

    /// The first edit of the manifest.
    pub(super) fn state(&self) -> Option<Vec<u8>> {
        let name = self.manifest()?;
        let log = Log::read(number_of(&name), &self.files[&name]);
        Some(log.chunks.first()?.payload.clone())
    }

    /// Makes one to six changes.
    pub(super) fn change(&mut self, choices: &mut Choices<'_>) {
        for _ in 0..=choices.below(6) {
            self.change_once(choices);
        }
    }

    /// Changes a table.
    pub(super) fn change_table(&mut self, choices: &mut Choices<'_>) {
        self.change_units("table", choices);
    }

    fn change_once(&mut self, choices: &mut Choices<'_>) {
        match choices.below(16) {
            0..=3 => self.change_manifest(choices),
            4..=6 => self.change_log(choices),
            7..=11 => self.change_units("table", choices),
            12 => self.change_units("values", choices),
            13 => self.change_units("dead", choices),
            14 => self.change_current(choices),
            _ => self.change_raw(choices),
        }
    }

    /// The names with `extension`.
    fn names(&self, extension: &str) -> Vec<String> {
        let names = self.files.keys();
        let has_extension = |name: &&String| {
            name.rsplit_once('.')
                .is_some_and(|(_, own)| own == extension)
        };
        names.filter(has_extension).cloned().collect()
    }

    fn manifest(&self) -> Option<String> {
        self.names("manifest").pop()
    }

    /// Changes each edit of the manifest by `edit`, which says whether it did.
    pub(super) fn each_edit(&mut self, mut edit: impl FnMut(&mut Vec<Record>) -> bool) {
        let Some(name) = self.manifest() else {
            return;
        };
        let mut log = Log::read(number_of(&name), &self.files[&name]);
        let mut is_changed = false;
        for chunk in &mut log.chunks {
            if let Some(mut records) = read_edit(&chunk.payload)
                && edit(&mut records)
            {
                chunk.payload = write_edit(&records);
                is_changed = true;
            }
        }
        if is_changed {
            self.write_manifest(&name, &log);
        }
    }

    fn write_manifest(&mut self, name: &str, log: &Log) {
        let (_, old_ends) = Log::read(number_of(name), &self.files[name]).write();
        let (bytes, ends) = log.write();
        let current = self
            .files
            .get(CURRENT)
            .map(|line| String::from_utf8_lossy(line));
        let length = current.and_then(|line| line.split(' ').nth(3)?.parse::<u64>().ok());
        let chunks = old_ends.iter().filter(|end| Some(**end) <= length).count();
        let chunks = chunks.min(ends.len());
        let length = chunks.checked_sub(1).map_or(0, |last| ends[last]);
        self.files.insert(name.to_owned(), bytes);
        self.write_current(name, length);
    }

    fn write_current(&mut self, name: &str, length: u64) {
        let text = format!("windrow manifest {name} {length}");
        let sum = u32::from_le_bytes(checksum(0, text.as_bytes()));
        let line = format!("{text} {sum:08x}\n");
        self.files.insert(CURRENT.to_owned(), line.into_bytes());
    }

    fn change_manifest(&mut self, choices: &mut Choices<'_>) {
        let Some(name) = self.manifest() else {
            return;
        };
        let mut log = Log::read(number_of(&name), &self.files[&name]);
        let edits: Vec<usize> = (0..log.chunks.len())
            .filter(|at| !log.chunks[*at].payload.is_empty())
            .collect();
        let Some(&at) = choices.pick(&edits) else {
            return;
        };
        match read_edit(&log.chunks[at].payload) {
            Some(mut records) if !choices.is_one_in(8) => {
                change_edit(&mut records, choices);
                log.chunks[at].payload = write_edit(&records);
            }
            _ => log.change(choices),
        }
        self.write_manifest(&name, &log);
    }

    fn change_log(&mut self, choices: &mut Choices<'_>) {
        let names = self.names("wal");
        let Some(name) = choices.pick(&names) else {
            return;
        };
        let number = number_of(name);
        let old = &self.files[name];
        let mut log = Log::read(number, old);
        let old_end = log.write().1.last().copied().unwrap_or(0);
        log.change(choices);
        let (bytes, ends) = log.write();
        let end = ends.last().copied().unwrap_or(0);
        self.files.insert(name.clone(), bytes);
        if end == old_end {
            return;
        }
        let place = |end: u64| {
            let mut body = Vec::new();
            put_varint(&mut body, number);
            put_varint(&mut body, end);
            body
        };
        let (old_place, new_place) = (place(old_end), place(end));
        self.each_edit(|records| {
            let named = records.iter_mut().filter(|record| {
                matches!(record.tag, tag::LOG_END | tag::LOG_SYNCED) && record.body == old_place
            });
            named
                .map(|record| record.body.clone_from(&new_place))
                .count()
                > 0
        });
        for next in names.iter().filter(|next| number_of(next) > number) {
            let mut log = Log::read(number_of(next), &self.files[next]);
            let header = log.chunks.first_mut().map(|chunk| &mut chunk.payload);
            let before = [number, old_end].map(u64::to_le_bytes).concat();
            if let Some(header) = header.filter(|header| header.get(1..17) == Some(&before)) {
                header[9..17].copy_from_slice(&end.to_le_bytes());
                self.files.insert(next.clone(), log.write().0);
            }
        }
    }

    fn units(&self, name: &str) -> Vec<Unit> {
        let (number, bytes) = (number_of(name), &self.files[name]);
        match name.rsplit_once('.') {
            Some((_, "table")) => table_units(number, bytes),
            Some((_, "values")) => value_units(number, bytes, self.keys),
            _ => garbage_units(number, bytes),
        }
    }

    fn change_units(&mut self, extension: &str, choices: &mut Choices<'_>) {
        let names = self.names(extension);
        let Some(name) = choices.pick(&names) else {
            return;
        };
        // One kind is as likely as another one, however many units it has.
        let mut units = self.units(name);
        let kinds: Vec<UnitKind> = units.iter().map(|unit| unit.kind).collect();
        let mut distinct = kinds.clone();
        distinct.sort_by_key(|kind| *kind as u8);
        distinct.dedup();
        let Some(&kind) = choices.pick(&distinct) else {
            return;
        };
        units.retain(|unit| unit.kind == kind);
        let Some(unit) = choices.pick(&units).cloned() else {
            return;
        };
        let Some(bytes) = self.files.get_mut(name) else {
            return;
        };
        let before = bytes[unit.covered.clone()].to_vec();
        let old_sum = unit.sum(bytes);
        if kind == UnitKind::Properties && !choices.is_one_in(4) {
            change_property(&mut bytes[unit.covered.clone()], choices);
        } else {
            for _ in 0..=choices.below(3) {
                change_in_place(&mut bytes[unit.covered.clone()], choices);
            }
        }
        unit.seal(bytes);
        let after = bytes[unit.covered.clone()].to_vec();
        let new_sum = unit.sum(bytes);
        match kind {
            UnitKind::Footer => self.replace_in_manifest(&old_sum, &new_sum),
            UnitKind::Properties => {
                if let Some((old, new)) = described(&before).zip(described(&after)) {
                    self.replace_in_manifest(&old, &new);
                }
            }
            _ => {}
        }
    }

    /// Replaces `old` by `new` where the manifest describes segments.
    fn replace_in_manifest(&mut self, old: &[u8], new: &[u8]) {
        if old == new || old.is_empty() {
            return;
        }
        self.each_edit(|records| {
            let mut is_changed = false;
            for record in records {
                let found = record.body.windows(old.len()).position(|it| it == old);
                if let Some(at) = found
                    && matches!(record.tag, tag::ADD_FILE | tag::ADD_SEGMENT)
                {
                    record.body.splice(at..at + old.len(), new.iter().copied());
                    is_changed = true;
                }
            }
            is_changed
        });
    }

    fn change_current(&mut self, choices: &mut Choices<'_>) {
        let Some(name) = self.manifest() else {
            return;
        };
        match choices.below(4) {
            0 => drop(self.files.remove(CURRENT)),
            1 => {
                let length = number(choices);
                self.write_current(&name, length);
            }
            2 => {
                let named = number(choices);
                self.write_current(&format!("{named:06}.manifest"), 0);
            }
            _ => {
                let line = self.files.entry(CURRENT.to_owned()).or_default();
                change(line, choices);
            }
        }
    }

    /// Changes bytes without their checksums, or names.
    fn change_raw(&mut self, choices: &mut Choices<'_>) {
        let names: Vec<String> = self.files.keys().cloned().collect();
        let Some(name) = choices.pick(&names) else {
            return;
        };
        match choices.below(5) {
            0 => drop(self.files.remove(name)),
            1 => {
                let Some(other) = choices.pick(&names) else {
                    return;
                };
                let bytes = self.files[other].clone();
                self.files.insert(name.clone(), bytes);
            }
            2 => {
                let bytes = self.files[name].clone();
                let extension = name.rsplit_once('.').map_or("", |(_, own)| own);
                let number = number(choices);
                self.files.insert(format!("{number:06}.{extension}"), bytes);
            }
            _ => {
                if let Some(bytes) = self.files.get_mut(name) {
                    change(bytes, choices);
                }
            }
        }
    }
}

/// The properties of a segment that the manifest has in the same form: their tags, in the order of the manifest.
const DESCRIBED: [u64; 7] = [3, 4, 1, 2, 5, 6, 7];

/// How the manifest writes what `covered`, a block of properties, says.
fn described(covered: &[u8]) -> Option<Vec<u8>> {
    let mut fields = BTreeMap::new();
    let (_, mut rest) = covered.split_last()?;
    while !rest.is_empty() {
        let tag = take_varint(&mut rest)?;
        fields.insert(tag, take_prefixed(&mut rest)?);
    }
    let mut described = Vec::new();
    for tag in DESCRIBED {
        let body = *fields.get(&tag)?;
        if tag <= 2 {
            put_prefixed(&mut described, body);
        } else {
            described.extend_from_slice(body);
        }
    }
    Some(described)
}

/// Changes one property in `covered` that the manifest has too.
fn change_property(covered: &mut [u8], choices: &mut Choices<'_>) {
    let mut bodies = Vec::new();
    let mut rest = &covered[..covered.len() - 1];
    let length = rest.len();
    while !rest.is_empty() {
        let Some(tag) = take_varint(&mut rest) else {
            return;
        };
        let Some(body) = take_prefixed(&mut rest) else {
            return;
        };
        let end = length - rest.len();
        if DESCRIBED.contains(&tag) {
            bodies.push(end - body.len()..end);
        }
    }
    if let Some(body) = choices.pick(&bodies) {
        change_in_place(&mut covered[body.clone()], choices);
    }
}
