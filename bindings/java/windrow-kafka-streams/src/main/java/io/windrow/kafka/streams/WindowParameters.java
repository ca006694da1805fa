package io.windrow.kafka.streams;

/**
 * What a store of windows is made of.
 *
 * @param name of the store
 * @param retention in milliseconds
 * @param segmentInterval in milliseconds
 * @param windowSize in milliseconds
 * @param retainsDuplicates whether a key may have several values in a window
 */
record WindowParameters(String name, long retention, long segmentInterval, long windowSize, boolean retainsDuplicates) {}
