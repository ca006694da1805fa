//! An encrypted file: places in it become cells, and cells are read and written.
//!
//! Invariants: no nonce is used twice, but for a chance of less than 2^-32 in a file of 2^32 writes of cells. A cell is
//! written as one sector, so what it held before a write is there after a power failure in the middle of it. A cell that is
//! not authentic is never taken for what was written.
//!
//! Concurrency: any thread may read beside one that writes elsewhere in the file, also in the same cell. A cell that is being
//! written again may look torn to a reader. The reader then waits for the writer: handles of one file have a lock in common, found
//! by the number of the file. A reader in another process looks again for a while. One handle of a file writes at a time.

use std::fmt::{self, Debug};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use windrow::vfs::{Advice, File, Region, WriteBack, read_up_to_end_at, write_all_at};

use crate::context::Context;
use crate::sector::{CELL_BYTES, Cell, FileCipher, NONCE_BYTES, SECTOR_BYTES, Sector};

/// The most cells that one write encrypts before it writes them.
const CELLS_MAX: u64 = 512;

/// How often a reader looks at a cell that another process may be writing. It waits 63 ms in all.
const LOOKS: u32 = 6;

/// [`CELL_BYTES`], for places in the file.
const CELL: u64 = CELL_BYTES as u64;

/// The most bytes of a file, far above what any file system takes.
const FILE_BYTES_MAX: u64 = 1 << 53;

/// Bytes of a page of the page cache.
const PAGE_BYTES: u64 = 4096;

/// What a writer knows of the end of the file.
#[derive(Clone)]
struct End {
    cells: u64,
    /// The last cell, if it is not full.
    partial: Option<Cell>,
}

/// See the [module](self).
pub(crate) struct EncryptedFile {
    inner: Arc<dyn File>,
    context: Arc<Context>,
    cipher: OnceLock<FileCipher>,
    end: Mutex<Option<End>>,
}

impl EncryptedFile {
    /// The file, which may be so new that it has no header yet.
    pub(crate) fn open(inner: Arc<dyn File>, context: &Arc<Context>) -> io::Result<Self> {
        let file = Self {
            inner,
            context: Arc::clone(context),
            cipher: OnceLock::new(),
            end: Mutex::default(),
        };
        file.cipher()?;
        Ok(file)
    }

    /// Writes the header of a new file.
    pub(crate) fn create(inner: Arc<dyn File>, context: &Arc<Context>) -> io::Result<Self> {
        let file = Self::open(inner, context)?;
        file.cipher_to_write()?;
        Ok(file)
    }

    /// The cipher; `None` while the file has no bytes, whatever its header is.
    ///
    /// # Errors
    /// Those of [`FileCipher::open`].
    fn cipher(&self) -> io::Result<Option<&FileCipher>> {
        if let Some(cipher) = self.cipher.get() {
            return Ok(Some(cipher));
        }
        // The power may have failed while the file was created; and nothing in it needs the key, which may be gone.
        if self.cells()? == 0 {
            return Ok(None);
        }
        let Some(header) = read_sector(&*self.inner, 0)? else {
            return Ok(None);
        };
        let cipher = FileCipher::open(&header, |name| self.context.key(name))?;
        Ok(Some(self.cipher.get_or_init(|| cipher)))
    }

    /// The cipher. While the file has no bytes, writes a header, and makes it durable: one that is there may be that of a sync that
    /// has failed, which only the page cache has.
    fn cipher_to_write(&self) -> io::Result<&FileCipher> {
        if let Some(cipher) = self.cipher()? {
            return Ok(cipher);
        }
        let (name, key) = self.context.current()?;
        let (cipher, header) = FileCipher::create(&name, &key)?;
        write_all_at(&*self.inner, &header, 0)?;
        // A file with cells always has its header.
        self.inner.sync_data()?;
        Ok(self.cipher.get_or_init(|| cipher))
    }

    /// The number of whole cells.
    fn cells(&self) -> io::Result<u64> {
        let sectors = self.inner.length()? / SECTOR_BYTES as u64;
        Ok(sectors.saturating_sub(1))
    }

    /// Reads one cell.
    fn cell(&self, cipher: &FileCipher, number: u64) -> io::Result<Option<Cell>> {
        let sector = read_sector(&*self.inner, physical(number))?;
        sector
            .map(|sector| self.open_cell(cipher, number, &sector))
            .transpose()
    }

    /// The cell in `sector`, as it was read beside writers.
    fn open_cell(&self, cipher: &FileCipher, number: u64, sector: &Sector) -> io::Result<Cell> {
        if let Some(cell) = cipher.open_cell(number, sector) {
            return Ok(cell);
        }
        self.look_again(cipher, number)
    }

    /// Reads a cell again that looked torn. Only one that was at the end of the file before may be being written.
    #[cold]
    #[expect(
        clippy::disallowed_methods,
        reason = "another process may be in the middle of a write; its end takes microseconds unless that process rests"
    )]
    fn look_again(&self, cipher: &FileCipher, number: u64) -> io::Result<Cell> {
        for look in 0..LOOKS {
            // Before the cell: it may end to be the last one at any time.
            let cells = self.cells()?;
            let unwritten = self.context.rewrites(cipher.id());
            let sector = read_sector(&*self.inner, physical(number))?;
            drop(unwritten);
            let opened = sector.and_then(|sector| cipher.open_cell(number, &sector));
            if let Some(cell) = opened {
                return Ok(cell);
            }
            if number + 1 < cells {
                break;
            }
            thread::sleep(Duration::from_millis(1 << look));
        }
        cipher.unforeseen_cell(number)
    }

    /// What a write finds at the end of the file.
    fn find_end(&self, cipher: &FileCipher) -> io::Result<End> {
        let cells = self.cells()?;
        let partial = match cells.checked_sub(1) {
            Some(last) => self.existing(cipher, last)?,
            None => None,
        };
        let partial = partial.filter(|cell| cell.length < CELL_BYTES);
        Ok(End { cells, partial })
    }

    /// A cell that is written again in part; `None` if it is not authentic.
    fn existing(&self, cipher: &FileCipher, number: u64) -> io::Result<Option<Cell>> {
        let sector = read_sector(&*self.inner, physical(number))?;
        Ok(sector.and_then(|sector| cipher.open_cell(number, &sector)))
    }

    /// Writes `bytes` at `offset`, with zeros in a gap before it: at most [`CELLS_MAX`] cells. Returns how many of `bytes`.
    fn write_cells(&self, end: &mut End, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let cipher = self.cipher_to_write()?;
        let first = (offset / CELL).min(end.cells);
        let written = offset..(offset + bytes.len() as u64).min((first + CELLS_MAX) * CELL);
        let numbers = first..written.end.div_ceil(CELL);
        let cells = numbers.end.max(end.cells);

        let mut nonces = vec![[0; NONCE_BYTES]; small(numbers.end - first)];
        getrandom::fill(nonces.as_flattened_mut()).map_err(io::Error::other)?;
        let mut sectors = vec![[0; SECTOR_BYTES]; nonces.len()];
        let mut rest = bytes;
        let mut cell = Cell::EMPTY;
        for ((number, nonce), sector) in numbers.clone().zip(&nonces).zip(&mut sectors) {
            let inside = part(number, &written);
            cell = match inside.len() {
                CELL_BYTES => Cell::EMPTY,
                _ => self.existing_in(end, cipher, number)?,
            };
            let (these, others) = rest.split_at(inside.len());
            cell.bytes[inside.clone()].copy_from_slice(these);
            // A cell is full unless it is the last one.
            cell.length = if number + 1 == cells && !inside.is_empty() {
                cell.length.max(inside.end)
            } else {
                CELL_BYTES
            };
            rest = others;
            cipher.seal(number, &cell, nonce, sector)?;
        }
        // Only what exists can be read meanwhile.
        let rewrites = (first < end.cells).then(|| self.context.rewrites(cipher.id()));
        write_all_at(&*self.inner, sectors.as_flattened(), physical(first))?;
        drop(rewrites);
        if numbers.end == cells {
            let partial = (cell.length < CELL_BYTES).then_some(cell);
            *end = End { cells, partial };
        }
        Ok(bytes.len() - rest.len())
    }

    /// The cell that a write changes in part.
    fn existing_in(&self, end: &End, cipher: &FileCipher, number: u64) -> io::Result<Cell> {
        let cell = match &end.partial {
            _ if number >= end.cells => Cell::EMPTY,
            Some(last) if number + 1 == end.cells => last.clone(),
            // Damage stays damage.
            _ => match self.existing(cipher, number)? {
                Some(cell) => cell,
                None => cipher.unforeseen_cell(number)?,
            },
        };
        Ok(cell)
    }

    /// Where the cells of a range of the file are.
    fn physical_range(range: &Range<u64>) -> Range<u64> {
        let end = range.end.min(FILE_BYTES_MAX);
        physical(range.start.min(end) / CELL)..physical(end.div_ceil(CELL))
    }
}

impl File for EncryptedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let Some(cipher) = self.cipher()? else {
            return Ok(0);
        };
        let length = (buffer.len() as u64).min(CELLS_MAX * CELL);
        if length == 0 || offset > FILE_BYTES_MAX {
            return Ok(0);
        }
        let wanted = offset..offset + length;
        let numbers = offset / CELL..wanted.end.div_ceil(CELL);
        // One more, which is there unless the one before it is the last of the file.
        let mut sectors = vec![[0; SECTOR_BYTES]; small(numbers.end - numbers.start) + 1];
        let at = physical(numbers.start);
        let found = read_up_to_end_at(&*self.inner, sectors.as_flattened_mut(), at)? / SECTOR_BYTES;
        let mut filled = 0;
        for ((number, sector), place) in numbers.zip(&sectors).zip(1..=found) {
            let mut cell = self.open_cell(cipher, number, sector)?;
            let is_last = place == found;
            // It was the last one, perhaps until after it was read: then more of it was written before the next one.
            if !is_last && cell.length < CELL_BYTES {
                cell = self.cell(cipher, number)?.unwrap_or(cell);
            }
            let length = if is_last { cell.length } else { CELL_BYTES };
            let inside = part(number, &wanted);
            let found = &cell.bytes[inside.start.min(length)..inside.end.min(length)];
            buffer[filled..][..found.len()].copy_from_slice(found);
            filled += found.len();
        }
        Ok(filled)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if offset.saturating_add(buffer.len() as u64) > FILE_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut state = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        // After an error it is unknown what was written.
        let mut end = match state.take() {
            Some(end) => end,
            None => self.find_end(self.cipher_to_write()?)?,
        };
        let mut written = 0;
        while written == 0 {
            written = self.write_cells(&mut end, buffer, offset)?;
        }
        *state = Some(end);
        Ok(written)
    }

    fn length(&self) -> io::Result<u64> {
        let Some(cipher) = self.cipher()? else {
            return Ok(0);
        };
        let Some(last) = self.cells()?.checked_sub(1) else {
            return Ok(0);
        };
        let length = self.cell(cipher, last)?.map_or(0, |cell| cell.length);
        Ok(last * CELL + length as u64)
    }

    fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        let range = Self::physical_range(&(offset..offset.saturating_add(length)));
        self.inner.reserve(range.start, range.end - range.start)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let mut state = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        if length >= self.length()? {
            return Ok(());
        }
        *state = None;
        let cipher = self.cipher_to_write()?;
        let cells = length.div_ceil(CELL);
        self.inner.truncate(physical(cells))?;
        let Some(last) = cells.checked_sub(1) else {
            return Ok(());
        };
        let wanted = small(length - last * CELL);
        let existing = self.existing(cipher, last)?;
        let mut cell = existing.map_or_else(|| cipher.unforeseen_cell(last), Ok)?;
        if cell.length != wanted {
            cell.bytes[wanted..].fill(0);
            cell.length = wanted;
            let mut nonce = [0; NONCE_BYTES];
            getrandom::fill(&mut nonce).map_err(io::Error::other)?;
            let mut sector = [0; SECTOR_BYTES];
            cipher.seal(last, &cell, &nonce, &mut sector)?;
            let _rewrites = self.context.rewrites(cipher.id());
            write_all_at(&*self.inner, &sector, physical(last))?;
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.inner.sync_data()
    }

    fn write_back(&self, range: Range<u64>, half: WriteBack) -> io::Result<()> {
        self.inner.write_back(Self::physical_range(&range), half)
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        self.inner.advise(Self::physical_range(&range), advice);
    }

    fn is_resident(&self, offset: u64) -> bool {
        let range = Self::physical_range(&(offset..offset.saturating_add(1)));
        self.inner.is_resident(range.start)
    }

    fn resident_pages(&self, offset: u64) -> u64 {
        let mut seen: Option<(u64, u64)> = None;
        let mut is_resident = |page: u64| {
            let group = page / 64;
            let pages = match seen {
                Some((known, pages)) if known == group => pages,
                _ => self.inner.resident_pages(group * 64 * PAGE_BYTES),
            };
            seen = Some((group, pages));
            pages & (1 << (page % 64)) != 0
        };
        let mut resident = 0;
        for page in 0..64 {
            let start = offset.saturating_add(page * PAGE_BYTES);
            let range = Self::physical_range(&(start..start.saturating_add(PAGE_BYTES)));
            // A page counts if any part of it is there, so that what is hot stays.
            let pages = range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES);
            resident |= u64::from(pages.into_iter().any(&mut is_resident)) << page;
        }
        resident
    }

    /// `Unsupported`: what is mapped is not decrypted.
    fn map(&self, _: u64) -> io::Result<Arc<Region>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Debug for EncryptedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EncryptedFile").field(&self.inner).finish()
    }
}

/// What of the cell `number` is in a range of the file.
fn part(number: u64, range: &Range<u64>) -> Range<usize> {
    let start = number * CELL;
    let inside = |place: u64| small(place.saturating_sub(start).min(CELL));
    inside(range.start)..inside(range.end)
}

/// A number of bytes of a cell, or of cells that are read or written together.
#[expect(clippy::cast_possible_truncation, reason = "the number is small")]
fn small(number: u64) -> usize {
    number as usize
}

/// Where a cell is.
fn physical(cell: u64) -> u64 {
    (cell + 1) * SECTOR_BYTES as u64
}

/// The whole sector at `offset`; `None` if the file ends before its end.
pub(crate) fn read_sector(file: &dyn File, offset: u64) -> io::Result<Option<Sector>> {
    let mut sector = [0; SECTOR_BYTES];
    let found = read_up_to_end_at(file, &mut sector, offset)?;
    Ok((found == SECTOR_BYTES).then_some(sector))
}
