package secure

import (
	"fmt"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// SASLOptions are how binlogd shows the brokers who it is.
type SASLOptions struct {
	Mechanism string `yaml:"mechanism"` // PLAIN (the default), SCRAM-SHA-256 or SCRAM-SHA-512
	User      string `yaml:"user"`
	Password  string `yaml:"password"`
}

// Validate returns an error that begins with the YAML key of o and says what to write. A nil o is valid.
func (o *SASLOptions) Validate(key string) error {
	if o == nil {
		return nil
	}
	switch o.Mechanism {
	case "", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512":
	default:
		return fmt.Errorf("%s.mechanism: %q is not offered; write PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", key, o.Mechanism)
	}
	if o.User == "" {
		return fmt.Errorf("%s.user: is missing; write the user that the brokers know", key)
	}
	return nil
}

// Apply has c authenticate; a nil o leaves it alone.
func (o *SASLOptions) Apply(c *sarama.Config) {
	if o == nil {
		return
	}
	c.Net.SASL.Enable = true
	c.Net.SASL.User, c.Net.SASL.Password = o.User, o.Password
	switch o.Mechanism {
	case "SCRAM-SHA-256":
		c.Net.SASL.Mechanism = sarama.SASLTypeSCRAMSHA256
		c.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: scram.SHA256} }
	case "SCRAM-SHA-512":
		c.Net.SASL.Mechanism = sarama.SASLTypeSCRAMSHA512
		c.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: scram.SHA512} }
	default:
		c.Net.SASL.Mechanism = sarama.SASLTypePlaintext
	}
}

// scramClient is one conversation of RFC 5802 in the shape that sarama asks for.
type scramClient struct {
	hash         scram.HashGeneratorFcn
	conversation *scram.ClientConversation
}

func (s *scramClient) Begin(user, password, authzID string) error {
	client, err := s.hash.NewClient(user, password, authzID)
	if err != nil {
		return err
	}
	s.conversation = client.NewConversation()
	return nil
}

func (s *scramClient) Step(challenge string) (string, error) { return s.conversation.Step(challenge) }

func (s *scramClient) Done() bool { return s.conversation.Done() }
