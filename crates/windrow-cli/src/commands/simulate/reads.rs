//! What reads of the tree at the end of a load ask of the device.
//!
//! Concurrency: none; no state.

use serde::Serialize;
use windrow::simulation::{Estimate, Load};

use crate::commands::cost::{Costs, Demand, DeviceCost, Fractions, OtherWrites, Shape};
use crate::text::human_bytes;

/// Reads of each kind, each while the store does nothing else.
#[derive(Debug, Serialize)]
pub(super) struct Reads {
    /// Bytes of memory for memtables, filters, indexes and the page cache.
    memory: u64,
    /// How many reads of each kind count, from an empty page cache on; none if it is full.
    counted: Option<u64>,
    /// Microseconds; none if no device is given.
    device: Option<DeviceCost>,
    /// A get that finds its key, one that does not, and a seek that reads an entry.
    get: Read,
    missing: Read,
    seek: Read,
}

/// A read on average.
#[derive(Debug, Serialize)]
struct Read {
    /// Requests to the device, and their bytes.
    requests: f64,
    bytes: f64,
    /// Reads of one thread, if a device is given.
    per_second: Option<f64>,
}

impl Reads {
    /// Reads in the tree that `load` leaves, with so many bytes of memory. If some are `counted`, the page cache is empty
    /// before them.
    pub(super) fn new(
        load: &Load,
        estimate: &Estimate,
        memory: u64,
        counted: Option<u64>,
        device: DeviceCost,
    ) -> Self {
        let costs = |fractions: Fractions| {
            let demand = Demand {
                keys: load.keys,
                key_bytes: load.key_bytes,
                shared_key_bytes: load.shared_key_bytes,
                values: load.values.clone(),
                values_from: Vec::new(),
                distribution: load.distribution,
                fractions,
                scan_length: 1.0,
                memory: Some(memory),
                reads_counted: counted,
                device,
                notes: Vec::new(),
                other_writes: OtherWrites {
                    operand_bytes: load.operand_bytes,
                    ..OtherWrites::default()
                },
            };
            let shape = Shape::at_end(estimate, &demand, &load.options);
            Costs::new(&shape, &demand, &load.options)
        };
        let read = |requests: f64, bytes: f64, micros: f64| Read {
            requests,
            bytes,
            per_second: (!device.is_free()).then_some(1e6 / micros),
        };
        let none = Fractions::default();
        let get = costs(Fractions { gets: 1.0, ..none });
        let missing = costs(Fractions {
            missing: 1.0,
            ..none
        });
        let seek = costs(Fractions { scans: 1.0, ..none });
        Self {
            memory,
            counted,
            device: (!device.is_free()).then_some(device),
            get: read(get.get_requests, get.get_request_bytes, get.get),
            missing: read(
                missing.missing_requests,
                missing.missing_request_bytes,
                missing.missing,
            ),
            seek: read(
                seek.scan_requests + seek.value_requests,
                seek.scan_request_bytes + seek.value_request_bytes,
                seek.scan,
            ),
        }
    }

    /// Rows of a table: names and amounts.
    pub(super) fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![("memory", human_bytes(self.memory))];
        for (name, read) in [
            ("device requests of a get", &self.get),
            ("  of an absent key", &self.missing),
            ("  of a seek", &self.seek),
        ] {
            let requests = format!("{:.3}, {:.0} bytes", read.requests, read.bytes);
            let amount = match read.per_second {
                Some(rate) => format!("{requests}, {rate:.0} per second"),
                None => requests,
            };
            rows.push((name, amount));
        }
        rows
    }
}
