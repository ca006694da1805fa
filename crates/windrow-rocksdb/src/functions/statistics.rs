//! Statistics that a program enables in its options. The databases that are opened with these, or with copies, count
//! together.

use std::ffi::{c_char, c_int};
use std::ptr::null_mut;
use std::sync::Arc;

use windrow_ffi::calls::run;
use windrow_ffi::handles::check;

use super::give_text;
use crate::options::OpenOptions;
use crate::statistics::{Statistics, Summary};

#[unsafe(no_mangle)]
extern "C" fn rocksdb_options_enable_statistics(options: Option<&mut OpenOptions>) {
    if let Some(options) = check(options) {
        run((), || options.statistics = Statistics::new().map(Arc::new));
    }
}

/// No effect before the statistics are enabled, as in RocksDB.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_options_set_statistics_level(
    options: Option<&mut OpenOptions>,
    level: c_int,
) {
    if let Some(statistics) = check(options).and_then(|options| options.statistics.as_ref()) {
        statistics.set_level(level);
    }
}

fn enabled(options: Option<&OpenOptions>) -> Option<&Statistics> {
    check(options)?.statistics.as_deref()
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_options_statistics_get_ticker_count(
    options: Option<&OpenOptions>,
    ticker: u32,
) -> u64 {
    enabled(options).map_or(0, |statistics| statistics.ticker(ticker))
}

/// The caller frees the text. It is null if the statistics are not enabled.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_options_statistics_get_string(options: Option<&OpenOptions>) -> *mut c_char {
    run(null_mut(), || {
        let text = enabled(options).map(Statistics::text);
        give_text(text.as_deref())
    })
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_options_statistics_get_histogram_data(
    options: Option<&OpenOptions>,
    histogram: u32,
    data: Option<&mut Summary>,
) {
    run((), || {
        if let (Some(statistics), Some(data)) = (enabled(options), check(data)) {
            *data = statistics.histogram(histogram);
        }
    });
}

handles! {
    rocksdb_statistics_histogram_data_create, rocksdb_statistics_histogram_data_destroy: Summary;
}

/// Defines functions that return a number of a histogram.
macro_rules! numbers {
    ($($name:ident: $field:ident, $type:ty;)*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $name(data: Option<&Summary>) -> $type {
            check(data).map_or(<$type>::default(), |data| data.$field)
        })*
    };
}

numbers! {
    rocksdb_statistics_histogram_data_get_average: average, f64;
    rocksdb_statistics_histogram_data_get_count: count, u64;
    rocksdb_statistics_histogram_data_get_max: max, f64;
    rocksdb_statistics_histogram_data_get_median: median, f64;
    rocksdb_statistics_histogram_data_get_min: min, f64;
    rocksdb_statistics_histogram_data_get_p95: p95, f64;
    rocksdb_statistics_histogram_data_get_p99: p99, f64;
    rocksdb_statistics_histogram_data_get_std_dev: deviation, f64;
    rocksdb_statistics_histogram_data_get_sum: sum, u64;
}
