//! Costs of trees that are made up: more of anything is never cheaper.

use windrow::simulation::{KeyDistribution, ValueSize};
use windrow::{FilterAllocation, KeyspaceOptions};

use super::memory::{Place, answered, answered_from_empty, hits};
use super::shape::{Moved, Separated};
use super::*;

/// A gigabyte in three levels, half of the operations writes.
fn demand() -> Demand {
    Demand {
        keys: 10_000_000,
        key_bytes: 16,
        shared_key_bytes: 0,
        values: ValueSize::same(100),
        values_from: vec![100],
        distribution: KeyDistribution::Uniform,
        fractions: Fractions {
            updates: 0.5,
            gets: 0.2,
            missing: 0.1,
            scans: 0.2,
            ..Fractions::default()
        },
        scan_length: 20.0,
        memory: Some(600 << 20),
        reads_counted: None,
        device: Device::Nvme.cost(),
        notes: Vec::new(),
        other_writes: OtherWrites::default(),
    }
}

fn shape() -> Shape {
    let level = |entries: f64, runs: f64| Level {
        entries,
        bytes: entries * 120.0,
        runs,
    };
    Shape {
        levels: vec![level(2e5, 2.0), level(1e6, 3.0), level(9e6, 1.0)],
        moved: Moved {
            log: 128.0,
            value_logs: 1.0,
            entries: 5.0,
            tables_written: 600.0,
            tables_read: 500.0,
            transient_logs_written: 1.0,
            transient_logs_read: 1.0,
            gc_written: 1.0,
            gc_read: 1.0,
        },
        ..Shape::default()
    }
}

/// Write, get, get of an absent key, scan, and the mean of all.
fn costs(shape: &Shape, demand: &Demand, options: &KeyspaceOptions) -> [f64; 5] {
    let costs = Costs::new(shape, demand, options);
    [
        costs.write,
        costs.get,
        costs.missing,
        costs.scan,
        costs.operation,
    ]
}

#[track_caller]
fn assert_not_cheaper(more: [f64; 5], less: [f64; 5]) {
    let mut pairs = more.iter().zip(&less);
    assert!(
        pairs.all(|(more, less)| more.is_finite() && *more >= less - 1e-9),
        "{more:?} {less:?}"
    );
}

// I1
#[test]
fn more_runs_cost_more() {
    let options = KeyspaceOptions::default();
    for level in 0..3 {
        for runs in [1.0, 1.5, 2.0, 5.0, 12.0] {
            let with = |runs| {
                let mut shape = shape();
                shape.levels[level].runs = runs;
                costs(&shape, &demand(), &options)
            };
            let (more, less) = (with(runs + 0.5), with(runs));
            assert_not_cheaper(more, less);
            assert!(more[3] > less[3], "a scan opens one more");
        }
    }
}

// I1
#[test]
fn more_bytes_cost_more() {
    let options = KeyspaceOptions::default();
    let fields: [fn(&mut Moved) -> &mut f64; 9] = [
        |it| &mut it.log,
        |it| &mut it.value_logs,
        |it| &mut it.entries,
        |it| &mut it.tables_written,
        |it| &mut it.tables_read,
        |it| &mut it.transient_logs_written,
        |it| &mut it.transient_logs_read,
        |it| &mut it.gc_written,
        |it| &mut it.gc_read,
    ];
    for field in fields {
        for device in [Device::Memory, Device::Nvme, Device::Ssd, Device::Disk] {
            let demand = Demand {
                device: device.cost(),
                ..demand()
            };
            let less = costs(&shape(), &demand, &options);
            let mut larger = shape();
            *field(&mut larger.moved) += 100.0;
            let more = costs(&larger, &demand, &options);
            assert_not_cheaper(more, less);
            assert!(more[0] > less[0] && (more[1] - less[1]).abs() < 1e-9);
        }
    }
}

// I1
#[test]
fn less_memory_costs_more() {
    let distributions = [
        KeyDistribution::Uniform,
        KeyDistribution::Zipfian { exponent: 0.99 },
        KeyDistribution::Zipfian { exponent: 1.3 },
    ];
    for distribution in distributions {
        let with = |megabytes: u64| {
            let demand = Demand {
                memory: Some(megabytes << 20),
                distribution,
                ..demand()
            };
            costs(&shape(), &demand, &KeyspaceOptions::default())
        };
        let sizes = [100, 200, 400, 800, 1200, 1600, 3000];
        for pair in sizes.windows(2) {
            assert_not_cheaper(with(pair[0]), with(pair[1]));
        }
        let all = Demand {
            memory: None,
            ..demand()
        };
        let all = costs(&shape(), &all, &KeyspaceOptions::default());
        assert_not_cheaper(with(1600), all);
        assert!(with(100)[1] > all[1] + 1.0, "a get waits for the device");
    }
}

#[test]
fn slower_devices_cost_more() {
    let with = |device: Device| {
        let demand = Demand {
            device: device.cost(),
            ..demand()
        };
        costs(&shape(), &demand, &KeyspaceOptions::default())
    };
    let devices = [Device::Memory, Device::Nvme, Device::Ssd, Device::Disk];
    for pair in devices.windows(2) {
        assert_not_cheaper(with(pair[1]), with(pair[0]));
    }
}

#[test]
fn filters_pass_less_the_more_bits_they_have() {
    let mut options = KeyspaceOptions::default();
    for allocation in [FilterAllocation::Monkey, FilterAllocation::Uniform] {
        options.filter_allocation = allocation;
        let false_positives = |bits: f64| {
            let mut options = options.clone();
            options.bits_per_key = bits;
            Filters::new(&shape(), &options).false_positives().missing
        };
        assert!((false_positives(0.0) - shape().runs_per_seek()).abs() < 1e-9);
        for bits in [1.0, 2.0, 4.0, 8.0, 16.0] {
            assert!(
                false_positives(bits) < false_positives(bits / 2.0),
                "{bits}"
            );
        }
    }
    // Bits where they save most pass less than the same everywhere.
    options.filter_allocation = FilterAllocation::Monkey;
    let monkey = Filters::new(&shape(), &options);
    options.filter_allocation = FilterAllocation::Uniform;
    let uniform = Filters::new(&shape(), &options);
    let passed = monkey.false_positives();
    assert!(passed.missing < uniform.false_positives().missing);
    // Six runs with ten bits: 6 times 0.008.
    assert!(
        (uniform.false_positives().missing - 0.049).abs() < 0.001,
        "{uniform:?}"
    );
    // Most keys are in the last level, behind all other runs.
    assert!(monkey.consulted_if_found > 5.0 && monkey.consulted_if_found < 6.0);
    assert!(passed.found < passed.missing);
}

#[test]
fn what_filters_pass_is_read_in_their_level() {
    let mut options = KeyspaceOptions::default();
    options.filter_allocation = FilterAllocation::Uniform;
    let filters = Filters::new(&shape(), &options);
    // Two, three and one of six runs with the same filters; the keys of the last level pass all but that one.
    let rate = filters.false_positives().missing / 6.0;
    for (level, runs) in [2.0, 3.0, 1.0].into_iter().enumerate() {
        assert!((filters.levels[level].missing - runs * rate).abs() < 1e-9);
    }
    assert!(filters.levels[2].found.abs() < 1e-9 && filters.levels[1].found > 2.0 * rate);
    // Memory for both upper levels answers their false-positive reads, though nine of ten entries are below.
    let demand = Demand {
        memory: Some(200_000_000),
        ..demand()
    };
    let misses = Misses::new(&shape(), &demand, &filters, 0.0);
    assert!(
        misses.false_positives > 0.9 * rate && misses.false_positives < 1.1 * rate,
        "{misses:?} {rate}"
    );
}

#[test]
fn a_tree_of_one_run_asks_one_filter() {
    let mut shape = shape();
    shape.levels = vec![Level {
        entries: 100.0,
        bytes: 12_000.0,
        runs: 1.0,
    }];
    let filters = Filters::new(&shape, &KeyspaceOptions::default());
    assert!((filters.consulted_if_found - 1.0).abs() < 1e-9);
    assert!(filters.false_positives().found.abs() < 1e-9);
    // Also where nothing was written yet.
    shape.levels.clear();
    let none = costs(&shape, &demand(), &KeyspaceOptions::default());
    assert!(none.iter().all(|cost| cost.is_finite()));
}

#[test]
fn memory_holds_what_is_read_most_for_its_size() {
    let places = [
        Place {
            bytes: 1000.0,
            reads: 1.0,
        },
        Place {
            bytes: 100.0,
            reads: 1.0,
        },
        Place {
            bytes: 0.0,
            reads: 0.0,
        },
    ];
    let hits = hits(&places, Some(600.0), &demand());
    assert!((hits[0] - 0.5).abs() < 1e-9 && (hits[1] - 1.0).abs() < 1e-9);
    assert!((hits[2] - 1.0).abs() < 1e-9);
    let zipfian = Demand {
        distribution: KeyDistribution::Zipfian { exponent: 0.99 },
        ..demand()
    };
    let tenth = answered(0.1, 1e9, &zipfian);
    assert!(tenth > 0.5 && tenth < 1.0, "{tenth}");
    assert!(answered(0.0, 1e9, &zipfian).abs() < 1e-6);
    assert!((answered(1.0, 1e9, &zipfian) - 1.0).abs() < 1e-6);
}

#[test]
fn values_apart_cost_scans_more_than_gets() {
    let mut shape = shape();
    let options = KeyspaceOptions::default();
    let near = costs(&shape, &demand(), &options);
    shape.value_logs = Separated {
        fraction: 1.0,
        bytes: 1e9,
        value_bytes: 100.0,
    };
    let apart = costs(&shape, &demand(), &options);
    assert_not_cheaper(apart, near);
    assert!(apart[3] - near[3] > 10.0 * (apart[1] - near[1]));
}

#[test]
fn large_values_take_the_bandwidth_of_the_device() {
    let options = KeyspaceOptions::default();
    let with = |device: Device, in_transient_logs: bool, value_bytes: f64| {
        let mut shape = shape();
        let apart = Separated {
            fraction: 0.5,
            bytes: 1e12,
            value_bytes,
        };
        *(if in_transient_logs {
            &mut shape.transient_logs
        } else {
            &mut shape.value_logs
        }) = apart;
        // Memory for none of them.
        let demand = Demand {
            memory: Some(0),
            device: device.cost(),
            ..demand()
        };
        costs(&shape, &demand, &options)
    };
    for device in [Device::Nvme, Device::Ssd, Device::Disk] {
        for in_transient_logs in [false, true] {
            let (large, small) = (
                with(device, in_transient_logs, 1e6),
                with(device, in_transient_logs, 1e3),
            );
            let more = 0.5 * (1e6 - 1e3) * device.cost().byte_read;
            assert!((large[1] - small[1] - more).abs() < 1e-6, "a get");
            // Those of scans are returned, too, which takes the processor.
            let processor = 0.5 * (1e6 - 1e3) * cpu::BYTE_RETURNED;
            let step = (large[3] - small[3]) / demand().scan_length;
            assert!((step - more - processor).abs() < 1e-6, "a step of a scan");
        }
    }
}

#[test]
fn an_empty_cache_answers_what_was_read_before() {
    // A hundred thousand pages.
    let place = Place {
        bytes: 4096.0 * 1e5,
        reads: 0.5,
    };
    let answered = |reads: f64, demand: &Demand| answered_from_empty(&place, reads, demand);
    let uniform = demand();
    // As many reads as there are pages meet the part 1 - 1/e of them.
    for (reads, expected) in [(0.0, 0.0), (2e5, (-1.0_f64).exp()), (2e9, 1.0)] {
        assert!(
            (answered(reads, &uniform) - expected).abs() < 1e-3,
            "{reads}"
        );
    }
    let zipfian = Demand {
        distribution: KeyDistribution::Zipfian { exponent: 0.99 },
        ..demand()
    };
    assert!(answered(2e5, &zipfian) > answered(2e5, &uniform) + 0.1);
    // A cache that is too small for all of them holds no more than when it is full.
    let full = hits(&[place], Some(4096.0 * 5e4), &uniform);
    let counted = Demand {
        reads_counted: Some(1 << 40),
        ..demand()
    };
    assert_eq!(hits(&[place], Some(4096.0 * 5e4), &counted), full);
}

/// Operands above a value are blocks to read, and range deletes are operations.
#[test]
fn operands_and_range_deletes_cost() {
    let options = KeyspaceOptions::default();
    let mut demand = demand();
    let plain = Costs::new(&shape(), &demand, &options);
    let unfolded = Shape {
        operands_per_key: 0.5,
        ..shape()
    };
    let with_operands = Costs::new(&unfolded, &demand, &options);
    assert!(with_operands.get > plain.get + 0.4);
    assert!(with_operands.get_requests > plain.get_requests);
    assert!((with_operands.missing - plain.missing).abs() < 1e-9);
    demand.fractions.range_deletes = 0.1;
    let with_ranges = Costs::new(&shape(), &demand, &options);
    assert!(with_ranges.operation > plain.operation + 0.1);
}

#[test]
fn requests_have_the_bytes_of_their_blocks() {
    let options = KeyspaceOptions::default();
    let costs = Costs::new(&shape(), &demand(), &options);
    for (requests, bytes) in [
        (costs.get_requests, costs.get_request_bytes),
        (costs.missing_requests, costs.missing_request_bytes),
        (costs.scan_requests, costs.scan_request_bytes),
    ] {
        assert!(requests > 0.0 && (bytes / requests - 4096.0).abs() < 1e-6);
    }
}
