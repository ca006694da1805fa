//! Frames of zstd and LZ4, one after the other, as one stream of what they hold.
//!
//! 1. Frames that decoders are to skip are skipped, in front, too; what stands behind a frame and is none
//!    is an error.
//! 2. The stream ends where a frame would begin. An end anywhere else is an error.

use std::io::{self, BufRead, Cursor, ErrorKind, Read};
use std::mem;

use lz4_flex::frame::FrameDecoder as Lz4Decoder;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder as ZstdDecoder};

/// What a frame is, by the number that it begins with.
#[derive(Debug, Clone, Copy)]
enum Frame {
    Zstd,
    Lz4,
    Skipped,
}

impl Frame {
    fn of(magic: [u8; 4]) -> Option<Self> {
        match u32::from_le_bytes(magic) {
            0xfd2f_b528 => Some(Self::Zstd),
            0x184d_2204 => Some(Self::Lz4),
            0x184d_2a50..=0x184d_2a5f => Some(Self::Skipped),
            _ => None,
        }
    }
}

/// Whether a file of frames begins so.
pub(super) fn are_frames(start: &[u8]) -> bool {
    start
        .first_chunk()
        .is_some_and(|magic| Frame::of(*magic).is_some())
}

/// What frames hold.
pub(super) struct Frames {
    /// The one that is being read.
    frame: Option<Frame>,
    zstd: ZstdDecoder,
    /// One for each frame; it owns what all frames are read from.
    lz4: Lz4Decoder<Source>,
}

impl Frames {
    /// Those that `reader` has.
    pub(super) fn new(reader: impl BufRead + Send + 'static) -> Self {
        Self {
            frame: None,
            zstd: ZstdDecoder::new(),
            lz4: Lz4Decoder::new(Source::new(reader)),
        }
    }

    /// Begins the next frame; whether there is one.
    fn begin(&mut self) -> io::Result<bool> {
        self.frame = None;
        let source = self.lz4.get_mut();
        if source.reader.fill_buf()?.is_empty() {
            return Ok(false); // 2
        }
        let mut magic = [0; 4];
        source.reader.read_exact(&mut magic)?;
        source.magic = Cursor::new(magic);
        self.frame = Frame::of(magic);
        match self.frame {
            Some(Frame::Zstd) => self.zstd.reset(source).map_err(io::Error::other)?,
            Some(Frame::Lz4) => self.lz4 = Lz4Decoder::new(mem::take(source)),
            Some(Frame::Skipped) => source.skip()?,
            None => return Err(damaged("what stands behind a frame is none")),
        }
        Ok(true)
    }

    /// More of a frame of zstd; nothing at its end.
    fn read_zstd(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.zstd.can_collect() == 0 && !self.zstd.is_finished() {
            let one = BlockDecodingStrategy::UptoBlocks(1);
            let decoded = self.zstd.decode_blocks(self.lz4.get_mut(), one);
            decoded.map_err(io::Error::other)?;
        }
        let read = self.zstd.read(into)?;
        let reported = self.zstd.get_checksum_from_data().filter(|_| read == 0);
        if reported.is_some() && reported != self.zstd.get_calculated_checksum() {
            return Err(damaged("a frame has another checksum than it says"));
        }
        Ok(read)
    }

    /// More of a frame of LZ4; nothing at its end.
    fn read_lz4(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.lz4.read(into)?;
        // The decoder takes the end of what it reads for the end of a frame. // 2
        if read == 0 && self.lz4.get_ref().has_ended {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(read)
    }
}

impl Read for Frames {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            let read = match self.frame {
                Some(Frame::Zstd) => self.read_zstd(into)?,
                Some(Frame::Lz4) => self.read_lz4(into)?,
                Some(Frame::Skipped) | None => 0,
            };
            if read > 0 || !self.begin()? {
                return Ok(read);
            }
        }
    }
}

/// What frames are read from. Decoders begin with the magic number, which was read before.
struct Source {
    magic: Cursor<[u8; 4]>,
    reader: Box<dyn BufRead + Send>,
    /// The last who read found nothing left.
    has_ended: bool,
}

impl Source {
    fn new(reader: impl BufRead + Send + 'static) -> Self {
        Self {
            magic: Cursor::default(),
            reader: Box::new(reader),
            has_ended: false,
        }
    }

    /// Passes over a frame that is to be skipped.
    fn skip(&mut self) -> io::Result<()> {
        let mut bytes = [0; 4];
        self.reader.read_exact(&mut bytes)?;
        let bytes = u64::from(u32::from_le_bytes(bytes));
        let mut skipped = self.reader.by_ref().take(bytes);
        if io::copy(&mut skipped, &mut io::sink())? < bytes {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

impl Default for Source {
    fn default() -> Self {
        Self::new(io::empty())
    }
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = match self.magic.read(into)? {
            0 => self.reader.read(into)?,
            read => read,
        };
        self.has_ended = read == 0;
        Ok(read)
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}
