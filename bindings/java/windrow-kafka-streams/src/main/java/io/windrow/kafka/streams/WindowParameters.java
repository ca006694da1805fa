package io.windrow.kafka.streams;

/**
 * What a store of windows is made of.
 *
 * @param name of the store
 * @param retention in milliseconds
 * @param windowSize in milliseconds
 * @param retainsDuplicates whether a key may have several values in a window
 * @param isByTime whether windows are also wanted in the order of their times
 */
record WindowParameters(String name, long retention, long windowSize, boolean retainsDuplicates, boolean isByTime) {}
