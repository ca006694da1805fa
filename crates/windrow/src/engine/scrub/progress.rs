//! The file in which a scrub notes how far it is.
//!
//! One line of text, which ends with its checksum; spaces fill what a longer line before it leaves.
//!
//! Invariant I1: Nothing depends on the file, and nothing syncs it. It is written after what it notes was read. A file that is
//! missing, torn or of another version costs a pass from the beginning, and a failure changes nothing but the file.
//!
//! Concurrency: only the process that has the database open for writing reads it and writes it.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::base::FileNumber;
use crate::codec::checksum::checksum;
use crate::policy::ScrubPass;
use crate::vfs::{OpenMode, Vfs, read_exact_at, write_all_at};

/// The begin of the line.
const FIRST_WORDS: &str = "windrow-scrub 1";

/// A longer file is no note.
const BYTES_MAX: u64 = 1 << 20;

/// The note of a scrub.
#[derive(Debug)]
pub(super) struct ProgressFile {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
}

impl ProgressFile {
    pub(super) fn new(vfs: &Arc<dyn Vfs>, path: PathBuf) -> Self {
        Self {
            vfs: Arc::clone(vfs),
            path,
        }
    }

    /// The pass that was noted last, if any can be read.
    pub(super) fn read(&self) -> Option<ScrubPass> {
        let file = self.vfs.open(&self.path, OpenMode::Read).ok()?;
        let length = file.length().ok().filter(|length| *length <= BYTES_MAX)?;
        let mut text = vec![0; usize::try_from(length).ok()?];
        read_exact_at(&*file, &mut text, 0).ok()?;
        decode(str::from_utf8(&text).ok()?)
    }

    /// Notes `pass`, if that can be done (I1).
    pub(super) fn write(&self, pass: &ScrubPass) {
        self.try_write(pass).ok();
    }

    fn try_write(&self, pass: &ScrubPass) -> io::Result<()> {
        let file = match self.vfs.open(&self.path, OpenMode::ReadWrite) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.vfs.create(&self.path),
            outcome => outcome,
        }?;
        let length = usize::try_from(file.length()?).unwrap_or(0);
        let mut text = encode(pass);
        let padding = length.saturating_sub(text.len());
        text.extend(std::iter::repeat_n(' ', padding));
        write_all_at(&*file, text.as_bytes(), 0)
    }

    /// Removes the note of a pass that has ended.
    pub(super) fn remove(&self) {
        self.vfs.remove(&self.path).ok();
    }
}

fn encode(pass: &ScrubPass) -> String {
    let (file, offset) = pass.current.unwrap_or_default();
    let numbers = |files: &BTreeSet<FileNumber>| {
        let numbers: Vec<String> = files.iter().map(|file| file.0.to_string()).collect();
        numbers.join(",")
    };
    let damaged = pass.damaged.union(&pass.again).copied().collect();
    let line = format!(
        "{FIRST_WORDS} began={} done={} file={} offset={offset} end={} checked={} damaged={}",
        pass.began.as_secs(),
        pass.done.0,
        file.0,
        pass.end.0,
        pass.checked,
        numbers(&damaged),
    );
    let sum = checksum(0, line.as_bytes());
    format!("{line} sum={sum:08x}\n")
}

fn decode(text: &str) -> Option<ScrubPass> {
    let (line, sum) = text.lines().next()?.rsplit_once(" sum=")?;
    if u32::from_str_radix(sum, 16).ok()? != checksum(0, line.as_bytes()) {
        return None;
    }
    let mut fields = line.strip_prefix(FIRST_WORDS)?.split_ascii_whitespace();
    let mut text = |name: &str| fields.next()?.strip_prefix(name)?.strip_prefix('=');
    let mut number = |name: &str| text(name)?.parse::<u64>().ok();
    let (began, done) = (number("began")?, number("done")?);
    let (file, offset) = (number("file")?, number("offset")?);
    let (end, checked) = (number("end")?, number("checked")?);
    let damaged = text("damaged")?.split(',').filter(|it| !it.is_empty());
    let damaged = damaged.map(|it| it.parse().ok().map(FileNumber));
    Some(ScrubPass {
        began: Duration::from_secs(began),
        done: FileNumber(done),
        current: (file > 0).then_some((FileNumber(file), offset)),
        end: FileNumber(end),
        checked,
        damaged: damaged.collect::<Option<_>>()?,
        again: BTreeSet::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::{BTreeSet, Duration, FileNumber, ScrubPass, decode, encode};

    #[test]
    fn notes_round_trip_and_torn_ones_are_none() {
        let mut pass = ScrubPass::new(Duration::from_secs(77), FileNumber(40));
        assert_eq!(decode(&encode(&pass)), Some(pass.clone()));
        pass.note(FileNumber(7), None, 5000);
        pass.note(FileNumber(9), Some(300), 300);
        pass.damaged = BTreeSet::from([7, 12].map(FileNumber));
        let text = encode(&pass);
        assert_eq!(decode(&format!("{text}     ")), Some(pass.clone()));
        for position in 0..text.len() - 1 {
            assert_eq!(decode(&text[..position]), None, "cut at {position}");
            let mut torn = text.clone().into_bytes();
            torn[position] ^= 1;
            assert_eq!(decode(str::from_utf8(&torn).unwrap()), None, "{position}");
        }
        // What was to be checked again is still to be checked again.
        let times = (pass.began, Duration::from_secs(1));
        let resumed = pass.clone().resumed_in_background(pass.end, times);
        let resumed = resumed.unwrap();
        assert_eq!(decode(&encode(&resumed)), Some(pass));
    }
}
