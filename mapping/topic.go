package mapping

import (
	"errors"
	"fmt"
	"strings"
)

// defaultTopic is the topic of an entry that names none.
const defaultTopic = "{database}.{table}"

// maxTopicLength is Kafka's limit, in bytes.
const maxTopicLength = 249

// checkTopicTemplate reports what is wrong with a topic as written in the configuration,
// where {database} and {table} stand for the table's names.
func checkTopicTemplate(template string) error {
	text := strings.NewReplacer("{database}", "d", "{table}", "t").Replace(template)
	if i := strings.IndexAny(text, "{}"); i >= 0 {
		return fmt.Errorf("%q has a brace that belongs to neither {database} nor {table}, the only placeholders", template)
	}
	return checkTopic(text)
}

// renderTopic gives the topic of a table.
func renderTopic(template, database, table string) (string, error) {
	topic := strings.NewReplacer("{database}", database, "{table}", table).Replace(template)
	return topic, checkTopic(topic)
}

// checkTopic refuses what Kafka refuses as the name of a topic, whatever the sink: a
// configuration must not depend on where its events go.
func checkTopic(topic string) error {
	for _, r := range topic {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '_', r == '-':
		default:
			return fmt.Errorf("topic %q has the character %q: only letters of ASCII, digits, \".\", \"_\" and \"-\" are allowed", topic, r)
		}
	}
	switch {
	case topic == "":
		return errors.New("the topic is empty")
	case topic == "." || topic == "..":
		return fmt.Errorf("topic %q is reserved: write a name", topic)
	case len(topic) > maxTopicLength:
		return fmt.Errorf("topic %q has %d characters: at most %d are allowed", topic, len(topic), maxTopicLength)
	}
	return nil
}
