// Package secure is what sinks and checkpoint stores have in common in how they secure connections and show who they are.
package secure

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLSOptions are how connections to Redis and Kafka are secured. Present means encrypted, unless Mode says otherwise.
type TLSOptions struct {
	// Mode is verify-identity (the default: a trusted certificate for the address),
	// verify-ca (a trusted certificate), required (any certificate) or disabled.
	Mode       string `yaml:"mode"`
	CA         string `yaml:"ca"`   // PEM file; the system's authorities where empty
	Cert       string `yaml:"cert"` // PEM file of a client certificate, with Key
	Key        string `yaml:"key"`
	ServerName string `yaml:"server_name"` // the name to verify where it is not the address
}

// Config returns nil where connections are not encrypted. key is the YAML key of o, which errors begin with, and host what a
// certificate is to be made out to unless ServerName says otherwise; where both are empty, the client fills it in.
func (o *TLSOptions) Config(key, host string) (*tls.Config, error) {
	if o == nil || o.Mode == "disabled" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.ServerName}
	if c.ServerName == "" {
		c.ServerName = host
	}
	if o.CA != "" {
		pem, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, fmt.Errorf("%s.ca: %w", key, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s.ca: %s holds no certificate; write a PEM file of certificates", key, o.CA)
		}
	}
	if (o.Cert == "") != (o.Key == "") {
		return nil, fmt.Errorf("%s: cert and key belong together; write both or neither", key)
	}
	if o.Cert != "" {
		pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, fmt.Errorf("%s.cert: %w", key, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	switch o.Mode {
	case "", "verify-identity":
	case "required":
		c.InsecureSkipVerify = true // asked for: encrypted, but not authenticated
	case "verify-ca":
		c.InsecureSkipVerify = true // the chain is verified below, the name is not
		roots := c.RootCAs
		c.VerifyConnection = func(state tls.ConnectionState) error { return verifyChain(state, roots) }
	default:
		return nil, fmt.Errorf("%s.mode: %q is not known; write verify-identity, verify-ca, required or disabled", key, o.Mode)
	}
	return c, nil
}

func verifyChain(state tls.ConnectionState, roots *x509.CertPool) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("tls: the server showed no certificate")
	}
	others := x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		others.AddCert(c)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: others})
	return err
}
