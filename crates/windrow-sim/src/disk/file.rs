//! Open files of a simulated disk.

use super::bytes::SECTOR_BYTES;
use super::directory::InodeId;
use super::faults::{Effect, OperationKind};
use super::region::SimRegion;
use super::sim_disk::SimDisk;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow::vfs::{Advice, File, Region, WriteBack};

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
    /// Opens the file `id` of `disk` under the name `path`.
    pub(super) fn open(
        disk: &SimDisk,
        id: InodeId,
        path: &Path,
        writable: bool,
    ) -> io::Result<Arc<dyn File>> {
        disk.enter()?.opened(id);
        Ok(Arc::new(Self {
            disk: disk.clone(),
            id,
            path: path.to_owned(),
            writable,
        }))
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
            state.closed(self.id);
        }
    }
}

impl File for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.enter()?;
        let fault = state.begin_with_fault(OperationKind::Read, &self.path, offset, &[])?;
        let count = state.image.inode(self.id).cached().read(offset, buffer);
        state
            .page_cache
            .load(self.id, offset..offset + count as u64);
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
        let space = state.image.inode(self.id).allocated() + state.free_bytes();
        let fitting = space.saturating_sub(offset).min(buffer.len() as u64);
        let fitting = usize::try_from(fitting).unwrap_or(buffer.len());
        if fitting == 0 && !buffer.is_empty() {
            return Err(state.quota_used_up("write", &self.path, offset));
        }
        let inode = state.image.inode_mut(self.id);
        inode.write_at(place, &buffer[..fitting]);
        state
            .page_cache
            .write(self.id, place..place + fitting as u64);
        state.changed(OperationKind::Write, &self.path, offset, &buffer[..fitting]);
        Ok(fitting)
    }

    fn length(&self) -> io::Result<u64> {
        let mut state = self.disk.enter()?;
        state.begin(OperationKind::Length, &self.path, 0, &[])?;
        Ok(state.image.inode(self.id).cached().length())
    }

    fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        self.check_writable()?;
        let mut state = self.disk.enter()?;
        state.begin(OperationKind::Reserve, &self.path, offset, &[])?;
        if state.cannot_reserve {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let end = offset + length;
        let more = end.saturating_sub(state.image.inode(self.id).allocated());
        if more > state.free_bytes() {
            return Err(state.quota_used_up("reserve", &self.path, end));
        }
        state.image.inode_mut(self.id).reserve(end);
        Ok(())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.check_writable()?;
        let mut state = self.disk.enter()?;
        state.begin(OperationKind::Truncate, &self.path, length, &[])?;
        state.check_truncation(self.id, &self.path, length);
        state.image.inode_mut(self.id).truncate(length);
        state.changed(OperationKind::Truncate, &self.path, length, &[]);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.enter()?;
        state.page_cache.sync(self.id);
        state.synced(OperationKind::Sync, &self.path, |image, failed| {
            image.inode_mut(self.id).sync(failed);
            Ok(())
        })
    }

    /// Makes nothing durable. A failure is one of the whole file, as that of a sync is.
    fn write_back(&self, range: Range<u64>, half: WriteBack) -> io::Result<()> {
        self.check_writable()?;
        let mut state = self.disk.enter()?;
        let fault =
            state.begin_with_fault(OperationKind::WriteBack, &self.path, range.start, &[])?;
        match half {
            WriteBack::Begin => state.page_cache.begin_write_back(self.id, range),
            WriteBack::End => state.page_cache.end_write_back(self.id, range),
        }
        let failed = fault.and_then(|fault| Some((fault.after, fault.effect.error()?)));
        failed.map_or(Ok(()), |(after, error)| {
            state.image.inode_mut(self.id).sync(Some(after));
            Err(error)
        })
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        let Ok(mut state) = self.disk.enter() else {
            return;
        };
        let length = state.image.inode(self.id).cached().length();
        match advice {
            Advice::WillNeed => {
                let end = range.end.min(length);
                state.page_cache.load(self.id, range.start..end);
            }
            Advice::DontNeed => state.page_cache.drop_pages(self.id, range, length),
            Advice::Random | Advice::Sequential => {}
        }
    }

    fn resident_pages(&self, offset: u64) -> u64 {
        let state = self.disk.enter();
        state.map_or(u64::MAX, |state| state.page_cache.bits(self.id, offset))
    }

    /// False for most offsets, so that cursors read ahead.
    fn is_resident(&self, offset: u64) -> bool {
        offset.is_multiple_of(3)
    }

    fn map(&self, length: u64) -> io::Result<Arc<Region>> {
        let mut state = self.disk.enter()?;
        state.begin(OperationKind::Map, &self.path, 0, &[])?;
        let bytes = state.image.inode(self.id).cached();
        if length > bytes.length() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut shown = vec![0; length];
        bytes.read(0, &mut shown);
        let region = SimRegion::new(shown);
        state.add_region(self.id, &region);
        Ok(region.show())
    }
}
