package io.windrow;

/**
 * Something that a database has done or met; see {@link Options#listener}.
 *
 * @param name {@code flush_ended}, {@code compaction_ended}, {@code expired_files_dropped},
 *     {@code garbage_collection_ended}, {@code stall_began}, {@code stall_ended}, {@code consumer_fell_behind},
 *     {@code no_space} or {@code space_resumed}
 * @param json the event with all its members, as an object of JSON
 */
public record Event(String name, String json) {}
