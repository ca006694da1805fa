//! Bytes on their way between a database and a store: counted, checked, at a bounded rate.
//!
//! Concurrency: none; each transfer belongs to one call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::damage::damage;
use super::names::Piece;
use super::store::ByteSource;
use crate::base::{Error, ErrorKind, Result, TokenBucket};
use crate::codec::checksum::ContentChecksum;
use crate::manifest::names::FileName;
use crate::runtime::Runtime;
use crate::vfs::{File, Footprint};

/// The bytes of one read.
pub(super) const BUFFER_BYTES: usize = 256 << 10;

/// A transfer that waits checks this often whether it is still wanted.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What a call for backups does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackupPhase {
    /// It compares files of the database with the store, and copies what the store lacks.
    Copying,
    /// It reads pieces of the store to check them.
    Verifying,
    /// It copies pieces from the store.
    Restoring,
    /// It writes changes to the archive.
    Archiving,
    /// It applies changes of the archive to a restored database.
    Applying,
}

/// How far a call for backups is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupProgress {
    /// What it does.
    pub phase: BackupPhase,
    /// The bytes of this phase that are done.
    pub done: u64,
    /// All bytes of this phase, as far as they are known: a backup adds those that it has to read a second time, to copy
    /// them.
    pub total: u64,
}

/// What receives the progress.
pub(super) type Listener = Arc<dyn Fn(BackupProgress) + Send + Sync>;

/// The rate, and who hears of progress.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) runtime: Arc<dyn Runtime>,
    /// Bytes per second; 0 for no limit.
    pub(super) bytes_per_second: u64,
    pub(super) listener: Listener,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("bytes_per_second", &self.bytes_per_second)
            .finish_non_exhaustive()
    }
}

/// Counts the bytes that pass, and lets them wait for their rate.
pub(crate) struct Meter<'a> {
    settings: &'a Settings,
    /// Fails if the work is no longer wanted.
    wanted: &'a dyn Fn() -> Result<()>,
    bucket: TokenBucket,
    progress: BackupProgress,
}

impl<'a> Meter<'a> {
    pub(super) fn new(settings: &'a Settings, wanted: &'a dyn Fn() -> Result<()>) -> Self {
        Self {
            settings,
            wanted,
            bucket: TokenBucket::default(),
            progress: BackupProgress {
                phase: BackupPhase::Copying,
                done: 0,
                total: 0,
            },
        }
    }

    /// Begins a phase of `total` bytes.
    pub(crate) fn begin(&mut self, phase: BackupPhase, total: u64) {
        self.progress = BackupProgress {
            phase,
            done: 0,
            total,
        };
        (self.settings.listener)(self.progress);
    }

    /// Adds `bytes` to the phase.
    pub(crate) fn expect(&mut self, bytes: u64) {
        self.progress.total = self.progress.total.saturating_add(bytes);
    }

    /// Counts `bytes` as done that nobody had to read.
    pub(super) fn skip(&mut self, bytes: u64) -> Result<()> {
        (self.wanted)()?;
        self.progress.done = self.progress.done.saturating_add(bytes);
        (self.settings.listener)(self.progress);
        Ok(())
    }

    /// Counts `bytes` that were read, and waits until more may follow.
    pub(crate) fn pass(&mut self, bytes: u64) -> Result<()> {
        self.skip(bytes)?;
        let rate = self.settings.bytes_per_second as f64;
        if rate == 0.0 {
            return Ok(());
        }
        let runtime = &self.settings.runtime;
        let owed = self.bucket.take(bytes, rate, runtime.now());
        let mut rest = Duration::from_secs_f64(owed.max(0.0) / rate);
        while !rest.is_zero() {
            let piece = rest.min(POLL_INTERVAL);
            runtime.sleep(piece);
            rest -= piece;
            (self.wanted)()?;
        }
        Ok(())
    }
}

/// A file of a database, up to the length that counts. The page cache stays as it is.
pub(super) struct DatabaseFile {
    file: Footprint,
    name: FileName,
}

impl DatabaseFile {
    pub(super) fn new(file: Arc<dyn File>, name: FileName) -> Self {
        let file = Footprint::new(file);
        Self { file, name }
    }

    /// The bytes from `offset` up to `end`.
    pub(super) fn part<'a, 'm>(
        &'a mut self,
        offset: u64,
        end: u64,
        meter: &'a mut Meter<'m>,
    ) -> Part<'a, 'm> {
        Part {
            file: self,
            offset,
            end,
            meter,
        }
    }
}

/// A part of a file of a database.
pub(super) struct Part<'a, 'm> {
    file: &'a mut DatabaseFile,
    offset: u64,
    end: u64,
    meter: &'a mut Meter<'m>,
}

impl ByteSource for Part<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let length = buffer.len().min(BUFFER_BYTES) as u64;
        let next = self.end.min(self.offset + length);
        let count = usize::try_from(next - self.offset).unwrap_or(0);
        let DatabaseFile { file, name } = self.file;
        file.pass(self.offset);
        file.read_exact_at(&mut buffer[..count], self.offset)
            .map_err(|error| Error::read(&name.to_string(), self.offset, error))?;
        if next < self.end {
            file.ask_ahead(next..self.end.min(next + BUFFER_BYTES as u64));
        }
        self.offset = next;
        self.meter.pass(count as u64)?;
        Ok(count)
    }
}

/// An object of a store that is read at the rate of `meter`.
pub(super) struct Metered<'a, 'm> {
    pub(super) source: Box<dyn ByteSource + 'a>,
    pub(super) meter: &'a mut Meter<'m>,
}

impl ByteSource for Metered<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let length = buffer.len().min(BUFFER_BYTES);
        let count = read(&mut *self.source, &mut buffer[..length])?;
        self.meter.pass(count as u64)?;
        Ok(count)
    }
}

/// `source.read(buffer)`, of a source that may be wrong.
fn read(source: &mut dyn ByteSource, buffer: &mut [u8]) -> Result<usize> {
    let count = source.read(buffer)?;
    if count > buffer.len() {
        let message = "a store of backups has given more bytes than it was asked for";
        return Err(Error::new(ErrorKind::Io, message));
    }
    Ok(count)
}

/// The bytes of a piece. Others than those of its name are an error before the last of them is read.
pub(super) struct Checked<S> {
    source: S,
    piece: Piece,
    left: u64,
    checksum: ContentChecksum,
    /// The file of the message.
    name: String,
}

impl<S: ByteSource> Checked<S> {
    pub(super) fn new(source: S, piece: Piece, name: String) -> Self {
        Self {
            source,
            piece,
            left: piece.length,
            checksum: ContentChecksum::new(),
            name,
        }
    }

    fn damage(&self, what: &str) -> Error {
        damage(&self.name, self.piece.length - self.left, what)
    }
}

impl<S: ByteSource> ByteSource for Checked<S> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.left == 0 || buffer.is_empty() {
            return Ok(0);
        }
        let length = usize::try_from(self.left).unwrap_or(usize::MAX);
        let length = length.min(buffer.len());
        let count = self.source.read(&mut buffer[..length])?;
        if count == 0 {
            return Err(self.damage("it ends before its recorded end"));
        }
        self.checksum.update(&buffer[..count]);
        self.left -= count as u64;
        if self.left == 0 {
            if self.checksum.finish() != self.piece.checksum {
                return Err(self.damage("its bytes have another checksum"));
            }
            if self.source.read(&mut [0])? > 0 {
                return Err(self.damage("it goes on behind its recorded end"));
            }
        }
        Ok(count)
    }
}

/// The piece that has the next `length` bytes of `source`.
pub(super) fn piece_of(source: &mut dyn ByteSource, length: u64) -> Result<Piece> {
    let mut checksum = ContentChecksum::new();
    pass_all(source, |bytes| {
        checksum.update(bytes);
        Ok(())
    })?;
    Ok(Piece {
        checksum: checksum.finish(),
        length,
    })
}

/// Gives all bytes of `source` to `take`.
pub(super) fn pass_all(
    source: &mut dyn ByteSource,
    mut take: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match read(source, &mut buffer)? {
            0 => return Ok(()),
            count => take(&buffer[..count])?,
        }
    }
}
