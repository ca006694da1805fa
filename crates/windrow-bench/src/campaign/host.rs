//! What a reader of figures wants to know of the machine that they are from.

use std::fmt::{self, Display};
use std::fs;
use std::thread;

use serde::{Deserialize, Serialize};

/// A machine, as far as it tells of itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Host {
    /// Its processor's model.
    pub processor: String,
    /// Threads that can run at once.
    pub cores: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// The operating system, with its version.
    pub system: String,
}

impl Host {
    /// The machine that this program runs on.
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

    /// Whether what is measured on both can be compared: a reboot may bring another release of the system, and
    /// leave a little more or less of the memory.
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

/// What stands behind the first `name:` in a file of such lines.
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
