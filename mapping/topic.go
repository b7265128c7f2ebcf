package mapping

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/binlogd/binlogd/mapping/expression"
)

// defaultTopic is the topic of an entry that names none.
const defaultTopic = "{database}.{table}"

// Kafka's limit on the name of a topic, in bytes, and a limit of our own on how many a topic of values may name.
const (
	maxTopicLength = 249
	maxTopics      = 1000
)

// topicTemplate is a topic as written in the configuration. {database}, {table} and {shard} stand for what the table is
// called. Other braces hold expressions over the row: such a topic must be one of topics, so that no value in a row can
// name a topic that its author did not.
type topicTemplate struct {
	at     string // the key of the YAML document
	text   string
	parts  []topicPart
	topics []string
}

// topicPart is a text, the name of a placeholder, or an expression.
type topicPart struct {
	text        string
	placeholder string
	expression  *expression.Expression
}

// dynamic reports whether the topic depends on values.
func (t *topicTemplate) dynamic() bool {
	return slices.ContainsFunc(t.parts, func(p topicPart) bool { return p.expression != nil })
}

// readTopic reads the topic of an entry or a rule, at being its key; nil where there is none, or a mistake.
func (r *ruleReader) readTopic(at, text string, topics []string) *topicTemplate {
	if text == "" {
		if len(topics) > 0 {
			r.mistake(at+".topics", "it goes with a topic: write topic beside it")
		}
		text = defaultTopic
	}
	t, err := parseTopic(text)
	if err != nil {
		r.mistake(at+".topic", "%v", err)
		return nil
	}
	t.at, t.topics = at+".topic", topics
	if len(topics) > maxTopics {
		r.mistake(at+".topics", "%d topics: at most %d are allowed", len(topics), maxTopics)
	}
	for i, topic := range topics {
		if err := checkTopic(topic); err != nil {
			r.mistake(fmt.Sprintf("%s.topics[%d]", at, i), "%v", err)
		}
	}
	switch {
	case t.dynamic() && len(topics) == 0:
		r.mistake(t.at, "%q is made of values of rows, which could name any topic: list those that it may name, topics: [orders.eu, orders.us]", text)
	case !t.dynamic() && len(topics) > 0:
		r.mistake(at+".topics", "it goes with a topic of values, such as orders.{new.region}: remove it")
	}
	return t
}

// parseTopic reads a topic. Braces that hold one word are placeholders, others expressions.
func parseTopic(text string) (*topicTemplate, error) {
	t := &topicTemplate{text: text}
	var sample strings.Builder // what it looks like once it is rendered
	for rest := text; rest != ""; {
		before, inside, opened := strings.Cut(rest, "{")
		if before != "" {
			t.parts = append(t.parts, topicPart{text: before})
			sample.WriteString(before)
		}
		if !opened {
			break
		}
		inside, after, closed := strings.Cut(inside, "}")
		part := topicPart{placeholder: inside}
		switch {
		case !closed:
			return nil, fmt.Errorf("%q has a brace that is not closed", text)
		case inside == "database" || inside == "table" || inside == "shard":
		case !strings.ContainsAny(inside, ".(["):
			return nil, fmt.Errorf("%q has a brace that belongs to neither {database} nor {table} nor {shard}, the only placeholders; values of the row are written {new.column}", text)
		default:
			e, err := expression.Parse(inside)
			if err != nil {
				return nil, fmt.Errorf("{%s}: %w", inside, err)
			}
			part = topicPart{expression: e}
		}
		t.parts = append(t.parts, part)
		sample.WriteByte('x')
		rest = after
	}
	if strings.Contains(sample.String(), "}") {
		return nil, fmt.Errorf("%q has a brace that is not opened", text)
	}
	return t, checkTopic(sample.String())
}

// render gives the topic of a table, of a template that is not dynamic.
func (t *topicTemplate) render(database, table, shard string) (string, error) {
	var b strings.Builder
	for _, p := range t.parts {
		switch p.placeholder {
		case "database":
			b.WriteString(database)
		case "table":
			b.WriteString(table)
		case "shard":
			b.WriteString(shard)
		default:
			b.WriteString(p.text)
		}
	}
	return b.String(), checkTopic(b.String())
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
