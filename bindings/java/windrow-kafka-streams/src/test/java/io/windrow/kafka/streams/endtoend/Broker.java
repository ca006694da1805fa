package io.windrow.kafka.streams.endtoend;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.kafka.common.Uuid;

/** A broker of Kafka in a process of its own, without other brokers. */
final class Broker implements AutoCloseable {
    private final Process process;
    private final String address;

    Broker(Path folder, int port) throws IOException, InterruptedException {
        address = "localhost:" + port;
        Files.createDirectories(folder);
        Path properties = Files.write(folder.resolve("server.properties"), List.of(
                "process.roles=broker,controller",
                "node.id=1",
                "controller.quorum.voters=1@localhost:" + (port + 1),
                "listeners=PLAINTEXT://localhost:" + port + ",CONTROLLER://localhost:" + (port + 1),
                "controller.listener.names=CONTROLLER",
                "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "log.dirs=" + folder.resolve("logs"),
                "offsets.topic.replication.factor=1",
                "offsets.topic.num.partitions=2",
                "transaction.state.log.replication.factor=1",
                "transaction.state.log.min.isr=1",
                "transaction.state.log.num.partitions=2",
                "transaction.abort.timed.out.transaction.cleanup.interval.ms=500",
                "share.coordinator.state.topic.replication.factor=1",
                "group.initial.rebalance.delay.ms=0",
                "group.min.session.timeout.ms=1000",
                "auto.create.topics.enable=false"));
        Process format = Processes.java(
                folder.resolve("format.log"), "128m", "kafka.tools.StorageTool",
                "format", "-t", Uuid.randomUuid().toString(), "-c", properties.toString());
        if (format.waitFor() != 0) {
            throw new IOException("the broker's folder cannot be formatted: " + Files.readString(folder.resolve("format.log")));
        }
        process = Processes.java(folder.resolve("broker.log"), "384m", "kafka.Kafka", properties.toString());
    }

    String address() {
        return address;
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
