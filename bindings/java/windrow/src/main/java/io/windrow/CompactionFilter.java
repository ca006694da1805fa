package io.windrow;

/**
 * Removes or replaces values that compactions come across; see {@link Options#compactionFilter}.
 *
 * <p>Any thread calls it, also several at once. The same value may come more than once, also after it was overwritten; then
 * the decision has no effect. A compaction drops changes that would have to wait, and a later one asks again. The filter may
 * read the database, but must not write, flush or compact. If it throws something, the entry stays.
 */
public interface CompactionFilter {
    /** For people who look at the options. */
    String name();

    /** What becomes of an entry. */
    Decision decide(Candidate candidate);
}
