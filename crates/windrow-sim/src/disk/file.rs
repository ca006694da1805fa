//! Open files and mappings of a simulated disk.

use super::SimDisk;
use super::bytes::SECTOR_BYTES;
use super::faults::{Effect, OperationKind};
use super::image::InodeId;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use windrow::vfs::{Advice, File, Region, ShowBytes};

/// An open file. It stays readable when its name is removed.
#[derive(Debug)]
pub(super) struct SimFile {
    disk: SimDisk,
    id: InodeId,
    /// The name under which it was opened, for logs.
    path: PathBuf,
    writable: bool,
}

impl SimFile {
    pub(super) fn new(disk: SimDisk, id: InodeId, path: PathBuf, writable: bool) -> Self {
        Self {
            disk,
            id,
            path,
            writable,
        }
    }

    fn check_writable(&self) -> io::Result<()> {
        if self.writable {
            Ok(())
        } else {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        if let Ok(mut state) = self.disk.enter() {
            state.close_file(self.id);
        }
    }
}

impl File for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.enter()?;
        let fault = state.begin_with_fault(OperationKind::Read, &self.path, offset, &[])?;
        let count = state.image.read_at(self.id, offset, buffer);
        match fault.map(|fault| fault.effect) {
            Some(Effect::Short) => Ok(count.div_ceil(2)),
            Some(Effect::FlippedBit) if count > 0 => {
                buffer[count / 2] ^= 1 << (offset % 8);
                Ok(count)
            }
            Some(effect) => effect.error().map_or(Ok(count), Err),
            None => Ok(count),
        }
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        self.check_writable()?;
        let mut state = self.disk.enter()?;
        let fault = state.begin_with_fault(OperationKind::Write, &self.path, offset, buffer)?;
        let (buffer, place) = match fault.map(|fault| fault.effect) {
            Some(Effect::Short) => (&buffer[..buffer.len().div_ceil(2)], offset),
            Some(Effect::LostWrite) => return Ok(buffer.len()),
            Some(Effect::Misdirected) => (buffer, offset ^ SECTOR_BYTES as u64),
            Some(effect) => match effect.error() {
                Some(error) => return Err(error),
                None => (buffer, offset),
            },
            None => (buffer, offset),
        };
        let space = state.image.allocated(self.id) + state.free_bytes();
        let fitting = space.saturating_sub(offset).min(buffer.len() as u64);
        let fitting = usize::try_from(fitting).unwrap_or(buffer.len());
        if fitting == 0 && !buffer.is_empty() {
            state.fault_log.push(format!(
                "write of {} at offset {offset}: the quota is used up",
                self.path.display()
            ));
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.image.write_at(self.id, place, &buffer[..fitting]);
        state.changed(OperationKind::Write, &self.path, offset, &buffer[..fitting]);
        Ok(fitting)
    }

    fn length(&self) -> io::Result<u64> {
        let mut state = self.disk.enter()?;
        state.begin(OperationKind::Length, &self.path, 0, &[])?;
        Ok(state.image.length(self.id))
    }

    fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        self.check_writable()?;
        let mut state = self.disk.enter()?;
        state.begin(OperationKind::Reserve, &self.path, offset, &[])?;
        if state.cannot_reserve {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let end = offset + length;
        let more = end.saturating_sub(state.image.allocated(self.id));
        if more > state.free_bytes() {
            state.fault_log.push(format!(
                "reserve of {} up to {end}: the quota is used up",
                self.path.display()
            ));
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.image.reserve(self.id, end);
        Ok(())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.check_writable()?;
        let mut state = self.disk.enter()?;
        state.begin(OperationKind::Truncate, &self.path, length, &[])?;
        state.check_truncation(self.id, &self.path, length);
        state.image.truncate(self.id, length);
        state.changed(OperationKind::Truncate, &self.path, length, &[]);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.enter()?;
        state.synced(OperationKind::Sync, &self.path, |image, failed| {
            image.sync_data(self.id, failed);
            Ok(())
        })
    }

    fn advise(&self, _: Range<u64>, _: Advice) {}

    /// So that cursors read ahead here and there.
    fn is_at_hand(&self, offset: u64) -> bool {
        offset.is_multiple_of(3)
    }

    fn map(&self, length: u64) -> io::Result<Arc<Region>> {
        let mut state = self.disk.enter()?;
        state.begin(OperationKind::Map, &self.path, 0, &[])?;
        if length > state.image.length(self.id) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut bytes = vec![0; length];
        state.image.read_at(self.id, 0, &mut bytes);
        let region = Arc::new(SimRegion {
            bytes,
            damaged: OnceLock::new(),
        });
        state.add_region(self.id, &region);
        Ok(Arc::new(Region::new(Shown(region))))
    }
}

/// A mapping: the bytes as they were when it was made.
#[derive(Debug)]
pub(super) struct SimRegion {
    bytes: Vec<u8>,
    /// What readers see from the moment damage is planted.
    damaged: OnceLock<Vec<u8>>,
}

impl SimRegion {
    /// How many bytes of the file it shows.
    pub(super) fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Changes one byte for all readers from now on; a region is damaged only once.
    pub(super) fn damage(&self, offset: usize, mask: u8) {
        self.damaged.get_or_init(|| {
            let mut bytes = self.bytes.clone();
            bytes[offset] ^= mask;
            bytes
        });
    }
}

/// Shows a mapping that the disk can still damage.
#[derive(Debug)]
struct Shown(Arc<SimRegion>);

impl ShowBytes for Shown {
    fn bytes(&self) -> &[u8] {
        self.0.damaged.get().unwrap_or(&self.0.bytes)
    }
}
