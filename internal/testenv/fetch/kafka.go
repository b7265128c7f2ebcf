package fetch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const kafkaVersion = "4.4.0"

// Kafka is a folder of jars and the java that runs them.
type Kafka struct {
	Java string
	Jars string
	// Template is the formatted log folder of a node, to copy; its meta.properties is
	// to be written anew.
	Template string
}

// Command returns the words that run a class of Kafka's with the given JVM options.
func (k Kafka) Command(jvm []string, class string, args ...string) []string {
	words := append([]string{k.Java}, jvm...)
	words = append(words, "-cp", filepath.Join(k.Jars, "*"), class)
	return append(words, args...)
}

// KafkaServer is Apache Kafka 4.4. It comes as Maven artifacts; Java and Maven are
// installed with apt where the machine has none.
func KafkaServer(ctx context.Context) (Kafka, error) {
	jars, err := once(ctx, "kafka-"+kafkaVersion, "fetch Kafka "+kafkaVersion+" with Maven", func(ctx context.Context, dir string) error {
		if err := aptInstall(ctx, "mvn", "maven"); err != nil {
			return err
		}
		pom := dir + ".pom.xml"
		defer os.Remove(pom)
		if err := os.WriteFile(pom, []byte(kafkaPOM), 0o644); err != nil {
			return fmt.Errorf("write the pom: %w", err)
		}
		return command(ctx, "mvn", "--batch-mode", "--quiet", "--file", pom,
			"dependency:copy-dependencies", "-DoutputDirectory="+dir, "-DincludeScope=runtime")
	})
	if err != nil {
		return Kafka{}, err
	}
	if err := aptInstall(ctx, "java", "default-jre-headless"); err != nil {
		return Kafka{}, err
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return Kafka{}, fmt.Errorf("find java: %w", err)
	}
	kafka := Kafka{Java: java, Jars: jars}
	kafka.Template, err = once(ctx, "kafka-"+kafkaVersion+"-data", "format a Kafka log folder", func(ctx context.Context, dir string) error {
		file := dir + ".properties"
		defer os.Remove(file)
		properties := "process.roles=broker,controller\n" +
			"node.id=1\n" +
			"controller.quorum.voters=1@127.0.0.1:9093\n" +
			"listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n" +
			"controller.listener.names=CONTROLLER\n" +
			"log.dirs=" + dir + "\n"
		if err := os.WriteFile(file, []byte(properties), 0o644); err != nil {
			return fmt.Errorf("write Kafka's configuration: %w", err)
		}
		return command(ctx, kafka.Command(nil, "kafka.tools.StorageTool", "format",
			"--cluster-id", "AAAAAAAAAAAAAAAAAAAAAQ", "--config", file)...)
	})
	return kafka, err
}

const kafkaPOM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.github.binlogd</groupId>
  <artifactId>kafka-server</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>` + kafkaVersion + `</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-tools</artifactId>
      <version>` + kafkaVersion + `</version>
    </dependency>
    <dependency> <!-- without it the server logs nothing -->
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-simple</artifactId>
      <version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
`
