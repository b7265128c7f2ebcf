package canal

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// ErrReached says that reading came to SourceOptions.Until.
var ErrReached = errors.New("everything before the end that was asked for is read")

// ConfigError is a fault of the configuration, or of the account that it names: another
// attempt cannot help, an operator can.
type ConfigError struct {
	Err    error
	Remedy string // what to do, in words for an operator
}

func (e *ConfigError) Error() string { return withRemedy(e.Err, e.Remedy) }
func (e *ConfigError) Unwrap() error { return e.Err }

// SourceError means that the source cannot be followed from where it was left: its binlogs
// are purged, it is another server, it does not log what is needed.
type SourceError struct {
	Err    error
	Remedy string // what to do, in words for an operator
}

func (e *SourceError) Error() string { return withRemedy(e.Err, e.Remedy) }
func (e *SourceError) Unwrap() error { return e.Err }

func withRemedy(err error, remedy string) string {
	if remedy == "" {
		return err.Error()
	}
	return err.Error() + "; " + remedy
}

// Numbers of server errors that say something about the account or the connection
// (https://dev.mysql.com/doc/mysql-errors/en/server-error-reference.html).
const (
	errHandshake           = 1043
	errDatabaseDenied      = 1044
	errAccessDenied        = 1045
	errHostBlocked         = 1129
	errHostNotPrivileged   = 1130
	errTableDenied         = 1142
	errColumnDenied        = 1143
	errPrivilegeNeeded     = 1227
	errAuthUnsupported     = 1251
	errPluginMissing       = 1524
	errAccessDeniedNoPass  = 1698
	errMustChangePassword  = 1820
	errPasswordExpired     = 1862
	errAccountLocked       = 3118
	errSecureTransport     = 3159
	errMariaAccountBlocked = 4150
	errMariaAccountLocked  = 4151
)

// explain turns the outcome of an attempt to connect into an error for an operator.
func (o ConnectOptions) explain(err error) error {
	if refusal, ok := errors.AsType[*mysql.MyError](err); ok {
		err = refusal // without go-mysql's names of functions
	}
	wrapped := fmt.Errorf("connect to %s as %s: %w", o.Address, o.User, err)
	if remedy := o.remedy(err); remedy != "" {
		return &ConfigError{Err: wrapped, Remedy: remedy}
	}
	return wrapped
}

// remedy says what to change about the configuration or the account, and is empty where
// the next attempt may succeed without a change.
func (o ConnectOptions) remedy(err error) string {
	if refusal, ok := errors.AsType[*mysql.MyError](err); ok {
		switch refusal.Code {
		case errAccessDenied, errAccessDeniedNoPass:
			return "check source.user and source.password, and that the account may connect from this host"
		case errHostNotPrivileged:
			return "create the account for the host that binlogd connects from"
		case errHostBlocked:
			return "run FLUSH HOSTS (or TRUNCATE performance_schema.host_cache) on the server"
		case errMustChangePassword, errPasswordExpired:
			return fmt.Sprintf("give the account a new password: ALTER USER '%s' IDENTIFIED BY '…'", o.User)
		case errAccountLocked, errMariaAccountLocked, errMariaAccountBlocked:
			return fmt.Sprintf("unlock the account: ALTER USER '%s' ACCOUNT UNLOCK", o.User)
		case errSecureTransport:
			return "write source.tls.mode: required"
		case errAuthUnsupported, errHandshake, errPluginMissing:
			return "use an account that identifies by caching_sha2_password, mysql_native_password or ed25519"
		}
		return ""
	}

	var unknown *net.DNSError
	if errors.As(err, &unknown) && unknown.IsNotFound {
		return "check the host in source.address"
	}
	var badCert *tls.CertificateVerificationError
	var badAuthority x509.UnknownAuthorityError
	var badName x509.HostnameError
	var notTLS tls.RecordHeaderError
	switch {
	case errors.As(err, &badName):
		return "address the server by a name of its certificate, or write source.tls.mode: verify-ca"
	case errors.As(err, &badAuthority), errors.As(err, &badCert):
		return "point source.tls.ca at the authority that signed the server's certificate"
	case errors.As(err, &notTLS):
		return "check that source.address is a MySQL or MariaDB server, or write source.tls.mode: disabled"
	case noTLS(err):
		return "give the server a certificate (ssl_cert, ssl_key), or write source.tls.mode: preferred"
	}
	return ""
}

// accountLacks reports whether err is the server's refusal for want of a privilege.
func accountLacks(err error) bool {
	var refusal *mysql.MyError
	if !errors.As(err, &refusal) {
		return false
	}
	switch refusal.Code {
	case errDatabaseDenied, errTableDenied, errColumnDenied, errPrivilegeNeeded, errAccessDenied:
		return true
	}
	return false
}
