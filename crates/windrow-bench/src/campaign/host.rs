//! The machine of a campaign.

use std::fmt::{self, Display};
use std::fs;
use std::thread;

use serde::{Deserialize, Serialize};

/// A machine: processor, memory and operating system.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Host {
    /// The model of the processor.
    pub processor: String,
    /// The number of hardware threads.
    pub cores: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// The operating system, with its version.
    pub system: String,
}

impl Host {
    /// The machine of this program.
    pub fn here() -> Self {
        let unknown = || "unknown".to_owned();
        let kibibytes = field("/proc/meminfo", "MemTotal")
            .and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        let release = line("/proc/sys/kernel/osrelease");
        Self {
            processor: field("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
            cores: thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: kibibytes.unwrap_or(0) << 10,
            system: match release {
                Some(release) => format!("{} {release}", std::env::consts::OS),
                None => std::env::consts::OS.to_owned(),
            },
        }
    }

    /// Whether figures of both machines are comparable. A reboot may change the release of the system and, by a
    /// little, the size of the memory.
    pub fn is_like(&self, other: &Self) -> bool {
        self.processor == other.processor
            && self.cores == other.cores
            && self.memory_bytes.abs_diff(other.memory_bytes) <= self.memory_bytes / 50
            && self.system_name() == other.system_name()
    }

    /// The operating system without its version.
    fn system_name(&self) -> &str {
        self.system.split(' ').next().unwrap_or_default()
    }
}

impl Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            processor,
            cores,
            memory_bytes,
            system,
        } = self;
        write!(
            f,
            "{processor} with {cores} cores, {memory_bytes} bytes of memory and {system}"
        )
    }
}

/// The value of the first line `name: value` in a file.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (before, after) = line.split_once(':')?;
        (before.trim() == name).then(|| after.trim().to_owned())
    })
}

fn line(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_like_itself_after_a_reboot() {
        let host = Host {
            processor: "a processor".to_owned(),
            cores: 2,
            memory_bytes: 16 << 30,
            system: "linux 6.1.0".to_owned(),
        };
        let with = |change: fn(&mut Host)| {
            let mut other = host.clone();
            change(&mut other);
            other
        };
        for like in [
            host.clone(),
            with(|host| host.memory_bytes -= 200 << 20),
            with(|host| host.memory_bytes += 200 << 20),
            with(|host| host.system = "linux 6.2.0".to_owned()),
        ] {
            assert!(host.is_like(&like) && like.is_like(&host), "{like}");
        }
        for other in [
            with(|host| host.memory_bytes = 8 << 30),
            with(|host| host.cores = 4),
            with(|host| host.processor.push('s')),
            with(|host| host.system = "macos".to_owned()),
        ] {
            assert!(!host.is_like(&other), "{other}");
        }
    }
}
